//! Everything at once, at random: a bad network, a server that is killed, frozen and restarted, and callers that count.

use crate::failing::{Tally, load};
use crate::host::Host;
use crate::kit::{Rng, count_from_env, pause, until};
use crate::live::plain;
use crate::live_faults::{Far, through};
use respiral::EngineKind;
use respiral_testkit::{Accept, Connections, Hangup, Proxy};
use servers::Kind;
use std::rc::Rc;
use std::time::Duration;

const CALLERS: usize = 32;

/// One misfortune, or a better hour.
fn strike(far: &mut Far, rng: &mut Rng) {
    let how = if rng.below(2) == 0 { Hangup::Fin } else { Hangup::Reset };
    match rng.below(20) {
        0 => {
            let accept = [Accept::Refuse, Accept::Backlog, Accept::Silent, Accept::HangUp(how)];
            far.proxy.accept(accept[rng.below(4) as usize]).unwrap();
        }
        1 => far.live.server.kill().unwrap(),
        // (A dead one cannot be frozen.)
        2 => drop(far.live.server.stop_signal()),
        3..=5 => clear_up(far),
        _ => change_weather(&far.proxy, how, rng),
    }
}

/// What would lose bytes in the middle of a connection that lives on is not among these: no network does that.
fn change_weather(proxy: &Proxy, how: Hangup, rng: &mut Rng) {
    let (bytes, micros) = (1 + rng.below(40) as usize, Duration::from_micros(rng.below(5_000)));
    let way = [Connections::to_server, Connections::to_client, |both| both][rng.below(3) as usize];
    let (all, open) = (proxy.all_connections(), proxy.open_connections());
    let _ = match rng.below(14) {
        0 | 1 => way(all).split(bytes),
        2 => way(all).split_with_pause(8 * bytes, micros / 10),
        3 | 4 => way(all).delay(micros),
        5 => way(all).rate(100_000 * bytes as u64),
        6 => way(open).stall(),
        7 => open.resume(),
        8 | 9 => way(open).cut_after(50 * bytes, how),
        10 => open.hang_up(how),
        _ => all.heal(),
    };
}

/// The server is well, the network too, and everybody may come.
fn clear_up(far: &mut Far) {
    if far.live.server.cont_signal().is_err() {
        far.live.server.restart().unwrap();
    }
    far.proxy.all_connections().heal();
    far.proxy.accept(Accept::Serve).unwrap();
}

/// SIGKILL, SIGSTOP and restarts while the network splits, delays, stalls, cuts and lets nobody in: every caller's errors
/// tell the truth about its own counter, nothing runs twice; when all is well again the same client serves all of them.
/// `SEED` chooses another storm, `STRIKES` a longer one.
pub fn storm<H: Host>(kind: Kind, engine: EngineKind) {
    let seed = count_from_env("SEED", 20 + 2 * kind as u64 + u64::from(engine == EngineKind::Epoll));
    println!("SEED={seed}");
    // What was acknowledged is in the log before its reply is sent, so a killed server forgets none of it.
    let builder = plain(kind).arg("--appendonly", "yes").arg("--appendfsync", "no");
    through::<H>(builder, engine, async |mut far| {
        let options = far.options().connections(3).connect_timeout(Duration::from_millis(300));
        let options = options.command_timeout(Duration::from_millis(200));
        let client = far.connect::<H>(options.idle_read_timeout(Duration::from_millis(400))).await;
        // A counter per caller: what ran twice cannot hide behind what others may have run.
        let tallies: Vec<Rc<Tally>> = (0..CALLERS).map(|_| Rc::default()).collect();
        let sum = |count: fn(&Tally) -> i64| tallies.iter().map(|tally| count(tally)).sum::<i64>();
        let tasks: Vec<_> = tallies
            .iter()
            .enumerate()
            .flat_map(|(caller, tally)| load::<H>(&client, &format!("n:{caller}"), 1, tally))
            .collect();
        let mut rng = Rng::new(seed);
        for _ in 0..count_from_env("STRIKES", 40) {
            strike(&mut far, &mut rng);
            pause::<H>(Duration::from_millis(rng.below(80))).await;
        }
        let (done, maybe, not) = (sum(|t| t.done.get()), sum(|t| t.maybe.get()), sum(|t| t.not.get()));
        println!("{done} answered, {maybe} may have run, {not} have not");
        clear_up(&mut far);
        let before: Vec<i64> = tallies.iter().map(|tally| tally.done.get()).collect();
        until::<H>("everyone is served", || {
            tallies.iter().zip(&before).all(|(tally, before)| tally.done.get() > before + 20)
        })
        .await;
        tallies.iter().for_each(|tally| tally.stop.set(true));
        for task in tasks {
            task.result().await;
        }
        assert!(done > 0 && maybe + not > 0, "it was no storm");
        for (caller, tally) in tallies.iter().enumerate() {
            tally.check(client.get::<i64, _>(format!("n:{caller}")).timeout(None).await.unwrap());
        }
        client.close().await;
    });
}
