//! Server processes that do not outlive us.
//!
//! Dropping a server kills it, but a test process may be killed itself. `setpriv --pdeathsig KILL` asks
//! the kernel to kill the server then; it executes the server in its own place, so the process id stays.
//! The kernel watches the *thread* that started the child, not the process, and a test's thread ends
//! before a server that several tests share. So one thread that lives as long as the process starts all.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

struct Order {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

static SPAWNER: LazyLock<Mutex<Sender<Order>>> = LazyLock::new(|| {
    let (orders, incoming) = channel();
    thread::Builder::new()
        .name("server-spawner".into())
        .spawn(move || spawn_all(&incoming))
        .expect("a thread for starting servers");
    Mutex::new(orders)
});

fn spawn_all(incoming: &Receiver<Order>) {
    for Order { mut command, reply } in incoming {
        if let Err(refused) = reply.send(command.spawn()) {
            // Nobody waits for it any more.
            if let Ok(mut child) = refused.0 {
                let _ = child.kill().and_then(|()| child.wait());
            }
        }
    }
}

/// `program` as a command whose process dies with this one, where `setpriv` can arrange it.
pub(crate) fn command(program: &std::path::Path) -> Command {
    static SETPRIV: LazyLock<bool> = LazyLock::new(|| {
        Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "true"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    });
    if !*SETPRIV {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// Starts `command` from the thread that lives as long as this process.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    let (reply, answer) = channel();
    let orders = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    orders.send(Order { command, reply }).map_err(io::Error::other)?;
    drop(orders);
    answer.recv().map_err(io::Error::other)?
}

/// Sends `signal` to a child that was not yet waited for, so that its id cannot have gone to another.
pub(crate) fn signal(child: &mut Child, signal: Signal) -> io::Result<()> {
    if let Some(status) = child.try_wait()? {
        return Err(io::Error::other(format!("the server is gone: {status}")));
    }
    Ok(kill_process(Pid::from_child(child), signal)?)
}
