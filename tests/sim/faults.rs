//! Faults: each is one function and one line of the table.

use crate::net::Event;
use crate::socket::Link;
use crate::world::World;
use respiral::io::ConnectionId;

type Fault = (&'static str, fn(&mut World));

/// What stands here twice is twice as likely.
const FAULTS: &[Fault] = &[
    ("reset", reset),
    ("end of stream", end_stream),
    ("stall to the server", stall_up),
    ("stall to the client", stall_down),
    ("half open", half_open),
    ("kill the server", kill),
    ("cut a send", cut_send),
    ("cut a send", cut_send),
    ("cut a send", cut_send),
    ("refuse", refuse),
    ("black hole", black_hole),
    ("lose names", lose_names),
    ("slow names", slow_names),
    ("loading", loading),
    ("garbage", garbage),
    ("push", push),
    ("hog buffers", hog_buffers),
    ("late host", late_host),
    ("crash after an answer", crash_soon),
];

/// One of them, by chance.
pub fn strike(world: &mut World) {
    let (name, fault) = world.rng.pick(FAULTS);
    world.context.trace.note(world.context.now, || format!("fault: {name}"));
    fault(world);
}

fn victim(world: &mut World) -> Option<ConnectionId> {
    let open = world.net.open_sockets();
    if open.is_empty() { None } else { Some(world.rng.pick(&open)) }
}

/// How long a fault lasts.
fn spell(world: &mut World) -> u64 {
    let unit = world.plan.net.unit();
    let most = world.rng.pick(&[unit / 2, 4 * unit, 30 * unit]);
    world.context.now + world.rng.range(1..=most.max(1))
}

fn reset(world: &mut World) {
    if let Some(id) = victim(world) {
        world.net.reset(id, &mut world.context, &mut world.server);
    }
}

fn end_stream(world: &mut World) {
    if let Some(id) = victim(world) {
        world.net.end_stream(id, &mut world.context, &mut world.server);
    }
}

/// The next send breaks at the end of a frame, or a byte beside it: where fates divide.
fn cut_send(world: &mut World) {
    let offset = world.rng.pick(&[-1, 0, 0, 1, 5]);
    if let Some(socket) = victim(world).and_then(|id| world.net.sockets.get_mut(&id)) {
        socket.trap = Some(offset);
    }
}

fn stall_up(world: &mut World) {
    let until = spell(world);
    if let Some(socket) = victim(world).and_then(|id| world.net.sockets.get_mut(&id)) {
        socket.up.stall(until);
    }
}

fn stall_down(world: &mut World) {
    let until = spell(world);
    if let Some(socket) = victim(world).and_then(|id| world.net.sockets.get_mut(&id)) {
        socket.down.stall(until);
    }
}

fn half_open(world: &mut World) {
    if let Some(socket) = victim(world).and_then(|id| world.net.sockets.get_mut(&id)) {
        socket.up = Link::Lost;
        socket.down = Link::Lost;
    }
}

fn kill(world: &mut World) {
    let until = spell(world);
    let keeps_data = world.rng.coin();
    for id in world.net.open_sockets() {
        if world.rng.coin() {
            world.net.reset(id, &mut world.context, &mut world.server);
        } else {
            world.net.end_stream(id, &mut world.context, &mut world.server);
        }
    }
    world.server.kill(keeps_data);
    world.later(until, |world| world.server.up = true);
}

fn crash_soon(world: &mut World) {
    // The replies that are on their way arrive; the next commands meet a dead socket.
    if let Some(id) = victim(world) {
        let socket = world.net.sockets.get_mut(&id).expect("just found");
        socket.ended = true;
        let now = world.context.now;
        world.net.schedule(now, Event::Deliver(id));
    }
}

fn refuse(world: &mut World) {
    world.net.weather.refuses = true;
    let until = spell(world);
    world.later(until, |world| world.net.weather.refuses = false);
}

fn black_hole(world: &mut World) {
    world.net.weather.swallows_connects = true;
    let until = spell(world);
    world.later(until, |world| world.net.weather.swallows_connects = false);
}

fn lose_names(world: &mut World) {
    world.net.weather.loses_names = true;
    let until = spell(world);
    world.later(until, |world| world.net.weather.loses_names = false);
}

fn slow_names(world: &mut World) {
    world.net.weather.slow_names = true;
    let until = spell(world);
    world.later(until, |world| world.net.weather.slow_names = false);
}

fn loading(world: &mut World) {
    world.server.plan.loading_until = spell(world);
}

fn garbage(world: &mut World) {
    world.server.garbage = true;
}

fn push(world: &mut World) {
    if let Some(id) = victim(world) {
        let socket = world.net.sockets.get_mut(&id).expect("just found");
        let mut out = Vec::new();
        if let Some(session) = socket.session {
            world.server.push(session, &mut out);
        }
        socket.to_client.extend(out);
        let now = world.context.now;
        world.net.schedule(now, Event::Deliver(id));
    }
}

fn hog_buffers(world: &mut World) {
    let until = spell(world);
    while let Some(buffer) = world.pool.take_free() {
        world.hogged.push(buffer.filled(1));
    }
    world.later(until, |world| world.hogged.clear());
}

/// The thread is busy elsewhere: everything waits, and deadlines pass meanwhile.
fn late_host(world: &mut World) {
    let until = spell(world);
    world.context.now = until.min(world.plan.heal_at);
}
