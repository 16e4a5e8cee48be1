//! Everything at once, at random: a bad network, a server that is killed, frozen and restarted, and callers that count.

use crate::failing::{Tally, load};
use crate::host::Host;
use crate::kit::{Rng, count_from_env, pause, until};
use crate::live::plain;
use crate::live_faults::{Far, through};
use respiral::EngineKind;
use respiral_testkit::{Accept, Connections, Hangup};
use servers::Kind;
use std::rc::Rc;
use std::time::Duration;

const CALLERS: usize = 32;

/// One misfortune. Those that would lose bytes in the middle of a connection that lives on are not among them: no network
/// does that.
fn strike(far: &mut Far, rng: &mut Rng) -> String {
    let (bytes, micros) = (1 + rng.below(40) as usize, Duration::from_micros(rng.below(5_000)));
    let how = if rng.below(2) == 0 { Hangup::Fin } else { Hangup::Reset };
    let open = far.proxy.open_connections();
    let way = [Connections::to_server, Connections::to_client, |both| both][rng.below(3) as usize];
    match rng.below(16) {
        0 | 1 => drop(way(far.proxy.all_connections()).split(bytes)),
        2 => drop(way(far.proxy.all_connections()).split_with_pause(8 * bytes, micros / 10)),
        3 | 4 => drop(way(far.proxy.all_connections()).delay(micros)),
        5 => drop(way(far.proxy.all_connections()).rate(100_000 * bytes as u64)),
        6 => drop(way(open).stall()),
        7 => drop(open.resume()),
        8 | 9 => drop(way(open).cut_after(50 * bytes, how)),
        10 => drop(open.hang_up(how)),
        11 => {
            let accept =
                [Accept::Refuse, Accept::Backlog, Accept::Silent, Accept::HangUp(how), Accept::Serve];
            far.proxy.accept(accept[rng.below(5) as usize]).unwrap();
        }
        12 => far.live.server.kill().unwrap(),
        13 => drop(far.live.server.stop_signal()),
        // (It is there for half of the time at least.)
        14 => {
            far.live.server.restart().unwrap();
            far.proxy.accept(Accept::Serve).unwrap();
        }
        _ => {
            let _ = far.live.server.cont_signal();
            far.proxy.all_connections().heal();
        }
    }
    format!("{:?}", far.proxy.stats())
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
        let mut served = 0;
        for _ in 0..count_from_env("STRIKES", 40) {
            let done = sum(|tally| tally.done.get());
            strike(&mut far, &mut rng);
            pause::<H>(Duration::from_millis(rng.below(80))).await;
            served += u32::from(sum(|tally| tally.done.get()) > done);
        }
        println!(
            "{} {} {}, served in {served}",
            sum(|t| t.done.get()),
            sum(|t| t.maybe.get()),
            sum(|t| t.not.get())
        );
        // Fair weather.
        let _ = far.live.server.cont_signal();
        far.live.server.restart().unwrap();
        far.proxy.all_connections().heal();
        far.proxy.accept(Accept::Serve).unwrap();
        let before: Vec<i64> = tallies.iter().map(|tally| tally.done.get()).collect();
        until::<H>("everyone is served", || {
            tallies.iter().zip(&before).all(|(tally, before)| tally.done.get() > before + 20)
        })
        .await;
        tallies.iter().for_each(|tally| tally.stop.set(true));
        for task in tasks {
            task.result().await;
        }
        assert!(sum(|tally| tally.maybe.get()) > 0 && sum(|tally| tally.not.get()) > 0, "it was no storm");
        for (caller, tally) in tallies.iter().enumerate() {
            tally.check(client.get::<i64, _>(format!("n:{caller}")).timeout(None).await.unwrap());
        }
        client.close().await;
    });
}
