//! Endpoints that are found by name: what is asked of DNS, what is believed of the answers, and which endpoints follow.
//!
//! Deciding is pure: `answer` keeps what was good when a later answer is not, `compose` makes a cluster's endpoints out of
//! what its names resolve to, `pace` says when to ask again. Asking is `follower` (a task for each name), `lookup` (a
//! round of questions) and `sources` (name servers, `/etc/hosts`, the search list). Between the two lies the `directory`: what
//! every name leads to now.

mod answer;
mod circle;
mod compose;
mod directory;
mod follower;
mod lookup;
mod name;
mod pace;
mod question;
mod sources;

pub use circle::{leads_back, overlap};
pub use compose::ADDRESSES_PER_NAME_MAX;
pub(crate) use compose::{Composition, compose_all};
pub use directory::{Directory, NameStatus};
pub use follower::Follower;
pub use name::{DnsName, NameError};
pub use question::{Family, Question, Target};
