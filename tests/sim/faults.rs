//! Faults: each is one function and one line of the table.

use crate::net::Event;
use crate::parts;
use crate::servers::{GARBAGE, Servers};
use crate::socket::{Link, Socket};
use crate::world::World;
use respiral::io::ConnectionId;

type Fault = (&'static str, fn(&mut World));

/// What stands here twice is twice as likely.
const FAULTS: &[Fault] = &[
    ("reset", reset),
    ("end of stream", end_stream),
    ("stall to the server", |world| stall(world, |socket, until| socket.up.stall(until))),
    ("stall to the client", |world| stall(world, |socket, until| socket.down.stall(until))),
    ("slow link", |world| stall(world, |socket, until| socket.slow_until = until)),
    ("half open", |world| lose(world, true, true)),
    ("half open to the server", |world| lose(world, true, false)),
    ("half open to the client", |world| lose(world, false, true)),
    ("kill a server", kill),
    ("fail over", fail_over),
    ("cut a send", cut_send),
    ("cut a send", cut_send),
    ("cut a send", cut_send),
    ("refuse", refuse),
    ("black hole", black_hole),
    ("lose names", lose_names),
    ("slow names", slow_names),
    ("loading", loading),
    ("permission withdrawn", deny),
    ("login refused", refuse_login),
    ("garbage", |world| world.servers.instead = Some(world.rng.pick(GARBAGE).into())),
    ("garbage after a reply", |world| world.servers.after = Some(world.rng.pick(GARBAGE).into())),
    ("push", push),
    ("hog buffers", hog_buffers),
    ("busy thread", busy_thread),
    ("clock jump", clock_jump),
    ("crash after an answer", crash_soon),
];

/// One of them, by chance.
pub fn strike(world: &mut World) {
    world.strikes += 1;
    // Its own stream, so that leaving one fault out does not change the others.
    let fork = world.rng.fork();
    if world.context.cuts.has_fault(world.strikes) {
        return;
    }
    let after = std::mem::replace(&mut world.rng, fork);
    let (name, fault) = world.rng.pick(FAULTS);
    let number = world.strikes;
    world.context.trace.note(world.context.now, || format!("fault {number}: {name}"));
    world.context.ledger.counts.faults += 1;
    fault(world);
    world.rng = after;
}

/// A thread's kernel, and an open socket of it.
fn victim(world: &mut World) -> Option<(usize, ConnectionId)> {
    let thread = world.rng.index(world.threads.len());
    let open = world.threads[thread].net.open_sockets();
    if open.is_empty() { None } else { Some((thread, world.rng.pick(&open))) }
}

fn socket(world: &mut World) -> Option<&mut Socket> {
    let (thread, id) = victim(world)?;
    world.threads[thread].net.sockets.get_mut(&id)
}

/// How long a fault lasts.
fn spell(world: &mut World) -> u64 {
    let unit = world.plan.net.unit();
    let most = world.rng.pick(&[unit / 2, 4 * unit, 30 * unit]);
    world.context.now + world.rng.range(1..=most.max(1))
}

fn reset(world: &mut World) {
    if let Some((thread, id)) = victim(world) {
        world.reset(thread, id);
    }
}

fn end_stream(world: &mut World) {
    if let Some((thread, id)) = victim(world) {
        world.end_stream(thread, id);
    }
}

/// The next send breaks at the end of a frame, or a byte beside it: where fates divide.
fn cut_send(world: &mut World) {
    let offset = world.rng.pick(&[-1, 0, 0, 1, 5]);
    if let Some(socket) = socket(world) {
        socket.trap = Some(offset);
    }
}

fn stall(world: &mut World, how: fn(&mut Socket, u64)) {
    let until = spell(world);
    if let Some(socket) = socket(world) {
        how(socket, until);
    }
}

fn lose(world: &mut World, up: bool, down: bool) {
    if let Some(socket) = socket(world) {
        if up {
            socket.up = Link::Lost;
        }
        if down {
            socket.down = Link::Lost;
        }
    }
}

fn break_all(world: &mut World, host: u8) {
    for thread in 0..world.threads.len() {
        for id in world.threads[thread].net.open_sockets() {
            if world.threads[thread].net.sockets[&id].host != host {
                continue;
            }
            match world.rng.coin() {
                true => world.reset(thread, id),
                false => world.end_stream(thread, id),
            }
        }
    }
}

fn kill(world: &mut World) {
    let until = spell(world);
    let hosts = world.servers.hosts();
    let host = world.rng.pick(&hosts);
    let keeps_data = world.rng.coin();
    break_all(world, host);
    world.servers.kill(host, keeps_data);
    world.later(until, |world| world.servers.revive());
}

/// With the connections to the old primary broken, or not (F-35).
fn fail_over(world: &mut World) {
    let old = world.servers.primary();
    world.servers.fail_over();
    if world.rng.coin() {
        break_all(world, old);
    }
}

fn crash_soon(world: &mut World) {
    // The replies that are on their way arrive; the next commands meet a dead socket.
    if let Some((thread, id)) = victim(world) {
        let net = &mut world.threads[thread].net;
        net.sockets.get_mut(&id).expect("just found").ended = true;
        net.schedule(world.context.now, Event::Deliver(id));
    }
}

fn refuse(world: &mut World) {
    world.weather(|weather| weather.refuses = true);
    let until = spell(world);
    world.later(until, |world| world.weather(|weather| weather.refuses = false));
}

fn black_hole(world: &mut World) {
    world.weather(|weather| weather.swallows_connects = true);
    let until = spell(world);
    world.later(until, |world| world.weather(|weather| weather.swallows_connects = false));
}

fn lose_names(world: &mut World) {
    world.weather(|weather| weather.loses_names = true);
    let until = spell(world);
    world.later(until, |world| world.weather(|weather| weather.loses_names = false));
}

fn slow_names(world: &mut World) {
    world.weather(|weather| weather.slow_names = true);
    let until = spell(world);
    world.later(until, |world| world.weather(|weather| weather.slow_names = false));
}

fn loading(world: &mut World) {
    world.servers.plan.loading_until = spell(world);
}

fn deny(world: &mut World) {
    let names = parts::names();
    // The last word of a run is an ECHO.
    let name = world.rng.pick(&names);
    world.servers.denied.insert(name);
    let until = spell(world);
    world.later(until, |world| world.servers.denied.clear());
}

fn refuse_login(world: &mut World) {
    world.servers.plan.refuses_login = true;
    let until = spell(world);
    world.later(until, |world| world.servers.plan.refuses_login = false);
}

fn push(world: &mut World) {
    if let Some((thread, id)) = victim(world) {
        world.push(thread, id);
    }
}

fn hog_buffers(world: &mut World) {
    let until = spell(world);
    let thread = world.rng.index(world.threads.len());
    let thread = &mut world.threads[thread];
    while let Some(buffer) = thread.pool.take_free() {
        thread.hogged.push(buffer.filled(1));
    }
    world.later(until, |world| world.threads.iter_mut().for_each(|thread| thread.hogged.clear()));
}

/// Something else has the thread; its kernel goes on.
fn busy_thread(world: &mut World) {
    let until = spell(world);
    let thread = world.rng.index(world.threads.len());
    world.threads[thread].busy_until = until.min(world.plan.heal_at);
}

/// The machine slept: everything waits, and deadlines pass meanwhile.
fn clock_jump(world: &mut World) {
    let until = spell(world);
    world.context.now = until.min(world.plan.heal_at).max(world.context.now);
}

impl World {
    pub fn reset(&mut self, thread: usize, id: ConnectionId) {
        self.threads[thread].net.reset(id, &mut self.context, &mut self.servers);
    }

    pub fn end_stream(&mut self, thread: usize, id: ConnectionId) {
        self.threads[thread].net.end_stream(id, &mut self.context, &mut self.servers);
    }

    /// The server says something that nobody asked for.
    pub fn push(&mut self, thread: usize, id: ConnectionId) {
        let net = &mut self.threads[thread].net;
        let Some(socket) = net.sockets.get_mut(&id) else { return };
        let mut out = Vec::new();
        if let Some(session) = socket.session {
            Servers::push(&mut self.servers, session, &mut out);
        }
        socket.to_client.extend(out);
        net.schedule(self.context.now, Event::Deliver(id));
    }

    fn weather(&mut self, change: fn(&mut crate::net::Weather)) {
        self.threads.iter_mut().for_each(|thread| change(&mut thread.net.weather));
    }
}
