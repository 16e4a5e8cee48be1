//! What one run is like: everything that is chosen before it begins.

use crate::rng::Rng;
use crate::servers::Servers;
use respiral::io::EngineOptions;
use respiral::{ConnectOptions, Protocol};
use std::time::Duration;

pub const MS: u64 = 1_000;
pub const SECOND: u64 = 1_000_000;

/// Times are virtual microseconds.
#[derive(Clone)]
pub struct Plan {
    pub seed: u64,
    pub client: ClientPlan,
    /// More threads, each with a client of its own.
    pub others: Vec<ClientPlan>,
    pub net: NetPlan,
    pub server: ServerPlan,
    pub crowd: CrowdPlan,
    /// Mean time between faults; `None` is a world without.
    pub fault_every: Option<u64>,
    /// When faults end and everything must come right.
    pub heal_at: u64,
    pub close_at: Option<u64>,
    /// Receive buffers: how many, and their size.
    pub buffers: (u16, u32),
    /// Completions per turn at most.
    pub turn_budget: usize,
}

#[derive(Clone)]
pub struct ClientPlan {
    pub connections: u32,
    /// So many connections are made at a time.
    pub dials_max: usize,
    pub protocol: Protocol,
    pub database: i64,
    pub password: bool,
    pub name: bool,
    pub set_info: bool,
    pub by_name: bool,
    /// Its address is that of the replica, when there is one.
    pub to_replica: bool,
    pub eager: bool,
    pub connect_timeout: u64,
    pub command_timeout: Option<u64>,
    pub idle_read_timeout: Option<u64>,
    pub in_flight_max: usize,
    pub queued_bytes_max: u64,
    pub write_buffer: usize,
}

#[derive(Clone)]
pub struct NetPlan {
    pub delay_max: u64,
    /// Received pieces are at most so long.
    pub piece_max: usize,
    /// What the kernel keeps for a slow peer.
    pub send_buffer: usize,
    pub take_max: usize,
    /// How late the end of a send may be told.
    pub sent_lag_max: u64,
    pub close_lag_max: u64,
    /// Per mille of closed sockets of which something more is said when the next one is there.
    pub stale: u64,
}

impl NetPlan {
    /// About how long the set-up of a connection takes at most: timeouts are chosen to fit the network.
    pub fn unit(&self) -> u64 {
        let pieces = 300 / self.piece_max + 300 / self.take_max + 300 / self.send_buffer + 6;
        self.delay_max * pieces as u64 * 2 + self.sent_lag_max + self.close_lag_max
    }
}

#[derive(Clone)]
pub struct ServerPlan {
    pub knows_hello: bool,
    /// No password is right.
    pub refuses_login: bool,
    /// CLIENT SETNAME and SETINFO are refused.
    pub refuses_optional: bool,
    pub loading_until: u64,
    /// Replies to CLIENT SETINFO are held back until then.
    pub holds_info_until: u64,
    /// Per mille of replies with a push message beside them.
    pub pushes: u64,
    /// Per mille of RESP3 values that are told in an unusual way.
    pub twists: u64,
    /// There is a replica, which runs a write so much later at most.
    pub replica_lag: Option<u64>,
    /// It does not read while so many bytes of its replies wait.
    pub unread_max: usize,
}

#[derive(Clone)]
pub struct CrowdPlan {
    pub callers: usize,
    /// Of one thread.
    pub calls_max: u64,
    /// Until when they begin calls.
    pub until: u64,
    pub pause_max: u64,
    /// Per mille of calls that are dropped, and when at the latest.
    pub drops: u64,
    pub drop_within: u64,
    pub own_timeouts: u64,
    pub keep_max: u64,
    pub reply_max: usize,
    pub value_max: usize,
}

impl ClientPlan {
    fn random(rng: &mut Rng, unit: u64) -> Self {
        ClientPlan {
            connections: rng.pick(&[1, 1, 1, 2, 3, 5]),
            dials_max: rng.pick(&[1, 2, 128]),
            protocol: rng.pick(&[Protocol::Auto, Protocol::Auto, Protocol::Resp2, Protocol::Resp3]),
            database: rng.pick(&[0, 0, 3]),
            password: rng.per_mille(300),
            name: rng.coin(),
            set_info: rng.coin(),
            by_name: rng.coin(),
            to_replica: rng.per_mille(200),
            eager: rng.coin(),
            connect_timeout: unit * rng.pick(&[5, 20, 200]),
            command_timeout: rng.pick(&[Some(3), Some(3), Some(20), None]).map(|n: u64| (n * unit).max(MS)),
            idle_read_timeout: rng.pick(&[None, None, Some(4), Some(30)]).map(|n: u64| (n * unit).max(MS)),
            in_flight_max: rng.pick(&[1, 2, 3, 8, 64, 1024]),
            queued_bytes_max: rng.pick(&[1, 100, 1000, 10_000, 1 << 20]),
            write_buffer: rng.pick(&[1, 7, 64, 1000, 65_536]),
        }
    }
}

impl Plan {
    /// A calm world, for scenarios that bring their own trouble.
    pub fn calm() -> Self {
        Plan {
            seed: 1,
            others: Vec::new(),
            client: ClientPlan {
                connections: 1,
                dials_max: 128,
                protocol: Protocol::Auto,
                database: 0,
                password: false,
                name: false,
                set_info: true,
                by_name: false,
                to_replica: false,
                eager: true,
                connect_timeout: 10 * SECOND,
                command_timeout: Some(10 * SECOND),
                idle_read_timeout: None,
                in_flight_max: 1024,
                queued_bytes_max: 1 << 20,
                write_buffer: 4096,
            },
            net: NetPlan {
                delay_max: 200,
                piece_max: 1 << 16,
                send_buffer: 1 << 16,
                take_max: 1 << 16,
                sent_lag_max: 100,
                close_lag_max: 200,
                stale: 0,
            },
            server: ServerPlan {
                knows_hello: true,
                refuses_login: false,
                refuses_optional: false,
                loading_until: 0,
                holds_info_until: 0,
                pushes: 0,
                twists: 0,
                replica_lag: None,
                unread_max: usize::MAX,
            },
            crowd: CrowdPlan {
                callers: 0,
                calls_max: 0,
                until: 0,
                pause_max: 1,
                drops: 0,
                drop_within: 1,
                own_timeouts: 0,
                keep_max: 0,
                reply_max: 100,
                value_max: 100,
            },
            fault_every: None,
            heal_at: 0,
            close_at: None,
            buffers: (64, 4096),
            turn_budget: 64,
        }
    }

    /// The world of a seed.
    pub fn random(seed: u64) -> Self {
        let rng = &mut Rng::new(seed);
        let net = NetPlan {
            delay_max: rng.pick(&[10, 100, 1000]),
            piece_max: rng.pick(&[1, 10, 100, 100, 4096, 1 << 16]),
            send_buffer: rng.pick(&[10, 500, 10_000, 1 << 20]),
            take_max: rng.pick(&[3, 50, 1000, 1000, 1 << 20]),
            sent_lag_max: rng.pick(&[1, 200, 5_000]),
            close_lag_max: rng.pick(&[1, 500, 5_000]),
            stale: 300,
        };
        let unit = net.unit();
        // Values in a trickle only take time.
        let (reply_most, value_most) = (net.piece_max * 20, net.send_buffer.min(net.take_max) * 20);
        let heal_at = rng.range(40..=160) * unit.max(20 * MS);
        let callers = rng.pick(&[1, 3, 10, 30]);
        let calls_max = rng.pick(&[20, 60, 200]);
        // So that they are at it for most of the time.
        let pause = 2 * heal_at * callers / calls_max;
        let near = |rng: &mut Rng, chance| rng.per_mille(chance).then(|| rng.range(1..=heal_at));
        Plan {
            seed,
            client: ClientPlan::random(rng, unit),
            others: (0..rng.pick(&[0, 0, 0, 1, 2])).map(|_| ClientPlan::random(rng, unit)).collect(),
            server: ServerPlan {
                knows_hello: rng.per_mille(800),
                refuses_login: false,
                refuses_optional: rng.per_mille(200),
                loading_until: near(rng, 200).unwrap_or(0),
                holds_info_until: near(rng, 100).unwrap_or(0),
                pushes: rng.pick(&[0, 50, 500]),
                twists: rng.pick(&[0, 50, 500]),
                replica_lag: rng.pick(&[None, Some(10), Some(unit), Some(20 * unit)]),
                unread_max: rng.pick(&[usize::MAX, 20_000, 500]),
            },
            crowd: CrowdPlan {
                callers: callers as usize,
                calls_max,
                until: heal_at,
                pause_max: rng.pick(&[pause / 4, pause, 2 * pause]).max(1),
                drops: rng.pick(&[0, 100, 500]),
                drop_within: rng.pick(&[unit / 20, unit / 2, 3 * unit]).max(1),
                own_timeouts: rng.pick(&[0, 300]),
                keep_max: rng.pick(&[0, unit, 5 * unit]),
                reply_max: rng.pick(&[50, 2000, 40_000, 300_000]).min(reply_most),
                value_max: rng.pick(&[10, 300, 5000, 200_000]).min(value_most),
            },
            fault_every: rng.pick(&[None, Some(heal_at / 20), Some(heal_at / 40), Some(heal_at / 80)]),
            heal_at,
            close_at: rng.per_mille(250).then(|| rng.range(1..=heal_at + 2 * unit)),
            buffers: (rng.pick(&[1, 2, 4, 16, 64]), rng.pick(&[64, 512, 4096, 16_384])),
            turn_budget: rng.pick(&[1, 4, 64]),
            net,
        }
    }

    /// What each thread's client is like.
    pub fn clients(&self) -> impl Iterator<Item = &ClientPlan> {
        std::iter::once(&self.client).chain(&self.others)
    }

    pub fn options(&self, client: &ClientPlan) -> ConnectOptions {
        let time = Duration::from_micros;
        let host = match (client.by_name, client.to_replica && self.server.replica_lag.is_some()) {
            (true, _) => "cache.sim".to_owned(),
            (false, false) => format!("10.0.0.{}", Servers::FIRST),
            (false, true) => format!("10.0.0.{}", Servers::SECOND),
        };
        let mut options = ConnectOptions::tcp(host, 6379)
            .protocol(if self.server.knows_hello || client.protocol != Protocol::Resp3 {
                client.protocol
            } else {
                Protocol::Auto
            })
            .database(client.database)
            .set_info(client.set_info)
            .connections(client.connections)
            .connect_timeout(time(client.connect_timeout))
            .command_timeout(client.command_timeout.map(time))
            .idle_read_timeout(client.idle_read_timeout.map(time))
            .max_inflight_commands(client.in_flight_max)
            .max_queued_bytes(client.queued_bytes_max)
            .write_buffer(client.write_buffer)
            .engine(EngineOptions::new().buffer_count(self.buffers.0).buffer_size(self.buffers.1));
        if client.password {
            options = options.password("swordfish");
        }
        if client.name {
            options = options.client_name("sim");
        }
        options
    }
}
