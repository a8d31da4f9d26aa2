//! How the control plane lets another process take this one's place. How that process is started and told is
//! [`upgrade`](crate::upgrade)'s part.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use evenkeel_proxy::FileMark;
use evenkeel_proxy::control::socket::ControlSocket;

use super::{Phase, Plane};
use crate::admin::AdminListener;
use crate::keeper::Keeper;
use crate::notify::Supervisor;
use crate::signals::Wish;
use crate::upgrade::endowment::MayUpgrade;
use crate::upgrade::underway::{Event, Goods, Heir, Upgrades};

impl Plane {
    pub(super) fn attend_to(&mut self, event: Event) {
        match event {
            Event::Asked(asked) => match self.why_no_upgrade() {
                Some(why) => Upgrades::refuse(asked, why),
                None => {
                    let goods = self.goods();
                    self.upgrades.begin(asked, goods);
                }
            },
            Event::Settled(settled) => {
                if let Some(heir) = settled.successor() {
                    self.step_down(heir);
                }
            }
        }
    }

    fn why_no_upgrade(&self) -> Option<&'static str> {
        if self.charge.upgrades == MayUpgrade::No {
            return Some("this process was not started by `evenkeel run`");
        }
        (self.phase != Phase::Running).then_some("the process is stopping")
    }

    fn goods(&self) -> io::Result<Goods> {
        let (socket, admin) = (self.charge.socket.as_ref(), self.charge.admin.as_ref());
        Ok(Goods {
            proxy: Arc::clone(&self.charge.proxy),
            control: socket.map(ControlSocket::duplicate).transpose()?,
            admin: admin.map(AdminListener::duplicate).transpose()?,
            admin_file: admin.and_then(AdminListener::file).cloned(),
        })
    }

    /// Has charge of the files of these Unix sockets, which the process before has left.
    pub(super) fn take_files(&mut self, mut files: Vec<FileMark>) {
        if let Some(admin) = &mut self.charge.admin {
            admin.take_file(&files);
            files.retain(|file| admin.file() != Some(file));
        }
        self.charge.proxy.take_files(&files);
    }

    /// The process before still serves everybody, so that the end of this one costs nobody anything. The rest waits until this one
    /// serves, or does no harm.
    pub(super) fn fulfil_before_serving(&mut self, wish: Wish) -> io::Result<()> {
        if wish == Wish::Stop {
            return Err(io::Error::other("it was told to stop before it served"));
        }
        self.fulfil(wish);
        Ok(())
    }

    /// Hears what the process before still has to finish, and tells the one after what there is here.
    pub(super) fn exchange_remainders(&mut self) {
        if let Some(predecessor) = &mut self.predecessor {
            let remainder = predecessor.remainder();
            self.desk.remainder.note(remainder);
            if remainder.is_none() {
                self.predecessor = None;
            }
        }
        if let Some(successor) = &self.successor {
            successor.tell_sessions(self.charge.proxy.sessions());
        }
    }

    /// Another process serves. From here on, this one only lets its sessions finish.
    fn step_down(&mut self, heir: Heir) {
        // First: the supervisor hears the new process only when it knows of it.
        self.supervisor.main_process(heir.pid);
        if let Err(error) = heir.line.go() {
            self.supervisor.main_process(std::process::id());
            return heir.gone(&error);
        }
        self.charge.proxy.hand_over();
        self.supervisor = Supervisor::nobody();
        self.keeper.leave();
        self.stopping.store(true, Ordering::Relaxed);
        // Without a server there is nobody to tell.
        let _ = self.leave.take().map(|leave| leave.send(()));
        if let Some(socket) = self.charge.socket.take() {
            socket.leave();
        }
        if let (Some(admin), Some(task)) = (self.charge.admin.take(), self.admin.take()) {
            task.abort();
            admin.leave();
        }
        self.keeper = Keeper::default();
        let (pid, sessions) = (heir.pid, self.charge.proxy.sessions());
        tracing::info!(
            pid,
            sessions,
            "another process has taken over: sessions may finish"
        );
        self.successor = Some(heir.announce(sessions, self.stop_deadline()));
        self.exchange_remainders();
        self.phase = Phase::Superseded {
            since: Instant::now(),
        };
    }
}
