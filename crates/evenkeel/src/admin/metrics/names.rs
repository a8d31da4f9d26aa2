//! Figures of each name that stands for endpoints.

use super::family;
use super::text::Page;
use crate::desk::Desk;

pub(super) fn write(desk: &Desk, page: &mut Page) {
    let names = desk.proxy.names();
    let names: Vec<_> = names
        .iter()
        .map(|name| (name.question.to_string(), name))
        .collect();
    let mut addresses = page.family(&family::NAME_ADDRESSES);
    for (label, name) in &names {
        addresses.put(&[label], name.addresses.len());
    }
    let mut ages = page.family(&family::NAME_ANSWER_AGE);
    for (label, name) in &names {
        if let Some(age) = name.resolved_ago {
            ages.put(&[label], age.as_secs_f64());
        }
    }
    let mut failures = page.family(&family::NAME_FAILURES);
    for (label, name) in &names {
        failures.put(&[label], name.failures);
    }
}
