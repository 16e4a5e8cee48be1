//! Named scenarios: known faults of clients of this kind, and what random runs have found in this one.

mod callers;
mod found;
mod protocol;
mod recovery;
mod setup;

use crate::checkers::End;
use crate::plan::Plan;
use crate::socket::Socket;
use crate::trace::Trace;
use crate::world::World;
use respiral::Delivery;
use respiral::io::ConnectionId;

/// A world without trouble of its own, whose client is connected.
fn connected(plan: Plan) -> World {
    let mut world = unconnected(plan);
    world.run_for(50_000);
    assert_eq!(world.threads[0].connected, Some(Ok(())));
    world
}

fn unconnected(plan: Plan) -> World {
    let show = std::env::var_os("TRACE").is_some();
    let mut world = World::new(plan, Trace { show, ..Trace::default() });
    world.threads[0].listener = Some(world.threads[0].machine.listen(64));
    world
}

impl World {
    /// The one open socket.
    fn socket(&self) -> ConnectionId {
        let open = self.threads[0].net.open_sockets();
        assert_eq!(open.len(), 1, "one open socket: {open:?}");
        open[0]
    }

    fn has_reply(&self, call: u64) -> bool {
        self.context.ledger.outcome(call) == Some(&End::Reply)
    }

    /// The call failed, with this delivery.
    fn failed(&self, call: u64) -> Option<Delivery> {
        match self.context.ledger.outcome(call)? {
            End::Failed(error) => Some(error.delivery()),
            _ => None,
        }
    }

    /// How often the server ran the call, by its own log.
    fn runs(&self, call: u64) -> usize {
        let own = |line: &&String| {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            crate::wire::call_of(&words) == Some(call)
        };
        self.servers.log.iter().filter(own).count()
    }

    fn open_socket(&mut self, id: ConnectionId) -> &mut Socket {
        self.threads[0].net.sockets.get_mut(&id).expect("open")
    }

    fn break_all_sockets(&mut self) {
        for id in self.threads[0].net.open_sockets() {
            self.reset(0, id);
        }
    }

    fn break_socket(&mut self) {
        let id = self.socket();
        self.reset(0, id);
    }
}
