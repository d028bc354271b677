//! The servers of a takeover: which of them leads, and how they are started again.

use super::place::{NAMES, Place};
use super::{How, PATIENCE};
use crate::error::{During, Error, prove};
use crate::server::Server;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at which server leads.
const PAUSE: Duration = Duration::from_millis(5);

/// The addresses of the servers, which change when one is started again.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Arc<Mutex<Vec<SocketAddr>>>);

impl Addresses {
    pub(super) fn all(&self) -> Vec<SocketAddr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, at: usize, address: SocketAddr) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if at < all.len() { all[at] = address } else { all.push(address) }
    }
}

/// One server, or a leader and a follower.
pub(super) struct Fleet<'p> {
    pub(super) place: &'p Place<'p>,
    pub(super) addresses: Addresses,
    servers: Vec<Option<Server>>,
}

impl<'p> Fleet<'p> {
    /// Starts so many servers; the first one leads.
    pub(super) fn start(place: &'p Place<'p>, count: usize) -> Result<Self, Error> {
        let servers = (0..count).map(|_| None).collect();
        let mut fleet = Self { place, addresses: Addresses::default(), servers };
        for at in 0..count {
            fleet.start_one(at)?;
        }
        Ok(fleet)
    }

    /// The number of servers.
    pub(super) fn size(&self) -> usize {
        self.servers.len()
    }

    /// Waits until one server leads and the others follow it; returns the place of the leader. A server that has ended, because
    /// the machine left it without a processor for the length of its lease, is started again.
    pub(super) fn settle(&mut self) -> Result<usize, Error> {
        let began = Instant::now();
        loop {
            for at in 0..self.servers.len() {
                let ended = self.servers[at].as_mut().map(|server| server.process.0.try_wait());
                let ended = ended.transpose().during("look for a server")?;
                if ended.is_none_or(|status| status.is_some()) {
                    self.start_one(at)?;
                }
            }
            let states = self.states();
            let leads: Vec<usize> = (0..states.len()).filter(|at| states[*at] == Some(true)).collect();
            if let ([leader], true) = (&*leads, states.iter().all(Option::is_some)) {
                return Ok(*leader);
            }
            prove(began.elapsed() < PATIENCE, || format!("no server leads with followers: {states:?}"))?;
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends the leader, and waits until there is another one. The place of the leader stays empty, if there are several.
    pub(super) fn replace(&mut self, leader: usize, how: How) -> Result<(), Error> {
        let mut server = self.servers[leader].take().expect("the leader runs");
        match how {
            How::Handover => server.stop()?,
            How::Kill => {
                server.process.0.kill().during("kill a server")?;
                server.process.0.wait().during("wait for a killed server")?;
            }
        }
        if self.servers.len() == 1 {
            self.start_one(leader)?;
        }
        let began = Instant::now();
        while !self.states().contains(&Some(true)) {
            prove(began.elapsed() < PATIENCE, || "no server leads after the leader has gone".to_owned())?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Stops them: the leader last, so that the next server of the database waits for no lease.
    pub(super) fn stop(mut self) -> Result<(), Error> {
        let leader = self.settle()?;
        let last = self.servers.remove(leader);
        self.servers.into_iter().chain([last]).flatten().try_for_each(Server::stop)
    }

    /// Whether each server leads, if it is ready.
    fn states(&self) -> Vec<Option<bool>> {
        let state = |(server, address): (&Option<Server>, SocketAddr)| {
            server.as_ref()?;
            let (status, body) = tally_load::get_json(address, "/readyz").ok()?;
            (status == 200).then(|| body["follows"].is_null())
        };
        self.servers.iter().zip(self.addresses.all()).map(state).collect()
    }

    fn start_one(&mut self, at: usize) -> Result<(), Error> {
        // A server alone advertises nothing, as before there were followers.
        let advertise = (self.servers.len() > 1).then_some("auto");
        // The old one is gone before its folder is used again.
        self.servers[at] = None;
        let server = self.place.start(NAMES[at], advertise)?;
        self.addresses.set(at, server.listens.http);
        self.servers[at] = Some(server);
        Ok(())
    }
}
