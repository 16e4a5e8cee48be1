//! The everyday API, then a million pipelined operations. `cargo run --release -p respiral-monoio --example quickstart`
//!
//! Without `REDIS_URL` it starts an in-process server on a thread of its own.

use respiral_monoio::{Client, Result};
use respiral_testkit::{CountingAllocator, Server, alloc_count};
use std::{cell::Cell, rc::Rc, time::Instant};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const OPERATIONS: u64 = 1_000_000;
const TASKS: u64 = 256;

fn main() -> Result<()> {
    let server =
        std::env::var("REDIS_URL").is_err().then(|| Server::start().expect("a free port on 127.0.0.1"));
    let url = server.as_ref().map_or_else(|| std::env::var("REDIS_URL").unwrap_or_default(), Server::url);
    let mut runtime =
        monoio::RuntimeBuilder::<monoio::FusionDriver>::new().build().expect("a monoio runtime");
    runtime.block_on(async {
        let client = respiral_monoio::connect(url).await?;
        println!("engine: {}", client.engine());
        everyday(&client).await?;
        drive(&client).await?;
        client.close().await;
        Ok(())
    })
}

async fn everyday(client: &Client) -> Result<()> {
    client.set("quickstart:name", "Ada").ex(60).await?;
    let name: Option<String> = client.get("quickstart:name").await?;
    println!("name: {name:?}");
    let visits = client.incr("quickstart:visits").await?;
    println!("visits: {visits}");
    let version: String = client.cmd("ECHO").arg("any command works by name").await?;
    println!("{version}");
    Ok(())
}

async fn drive(client: &Client) -> Result<()> {
    let done = Rc::new(Cell::new(0));
    let (started, cpu, before) = (Instant::now(), cpu_ns(), alloc_count::snapshot());
    let tasks: Vec<_> = (0..TASKS).map(|_| monoio::spawn(count(client.clone(), done.clone()))).collect();
    for task in tasks {
        task.await?;
    }
    let (n, allocations) = (done.get() as f64, (alloc_count::snapshot() - before).allocations);
    println!("{:.0} ops/s", n / started.elapsed().as_secs_f64());
    println!("{:.0} ns CPU per op of this thread", (cpu_ns() - cpu) as f64 / n);
    println!("{:.6} allocations per op", allocations as f64 / n);
    Ok(())
}

async fn count(client: Client, done: Rc<Cell<u64>>) -> Result<()> {
    while done.get() < OPERATIONS {
        done.set(done.get() + 1);
        if done.get().is_multiple_of(OPERATIONS / 10) {
            println!("{:>3} %", done.get() * 100 / OPERATIONS);
        }
        client.incr("quickstart:counter").await?;
    }
    Ok(())
}

/// CPU time of this thread, in nanoseconds.
fn cpu_ns() -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|line| line.split(' ').next()?.parse().ok())
        .unwrap_or(0)
}
