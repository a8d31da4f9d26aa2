//! A hundred reloads while clients come, go and stay: nobody notices, and nothing piles up.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::evenkeel::Evenkeel;
use crate::support::service::{self, Service};
use crate::support::{client, ports, wait};

const RELOADS: usize = 100;
/// When it is first counted what the process holds; the second time is after the last reload.
const FIRST_COUNT: usize = 10;
/// Connections that echo all the time.
const LONG: usize = 64;
const LONG_PER_THREAD: usize = 16;
/// Threads that connect, ask and leave, each so often.
const SHORT_THREADS: usize = 4;
const WARM_UP: Duration = Duration::from_secs(120);
const SHORT_EVERY: Duration = Duration::from_millis(8);

/// What the configurations are made of.
struct World {
    front: SocketAddr,
    extra: SocketAddr,
    always: [Service; 2],
    sometimes: Service,
    warming: Service,
    /// Nobody listens there.
    dead: SocketAddr,
}

impl World {
    fn new() -> Self {
        Self {
            front: ports::free(),
            extra: ports::free(),
            always: [Service::echo(), Service::echo()],
            sometimes: Service::echo(),
            warming: Service::echo(),
            dead: ports::free(),
        }
    }

    /// The configuration of the reload with that number, each different from the one before; after a multiple of ten of them
    /// it is of the same size.
    fn config(&self, number: usize) -> String {
        let [a, b] = [0, 1].map(|index| self.always[index].address());
        let mut endpoints = vec![
            format!("{{ name = \"a\", address = \"{a}\", weight = 4 }}"),
            format!(
                "{{ name = \"b\", address = \"{b}\", weight = {} }}",
                1 + number / 5 % 2
            ),
            format!(
                "{{ name = \"dead\", address = \"{}\", weight = 2 }}",
                self.dead
            ),
        ];
        if number > 0 {
            let warming = self.warming.address();
            endpoints.push(format!(
                "{{ name = \"warming\", address = \"{warming}\", weight = 10 }}"
            ));
        }
        if number % 5 == 1 {
            endpoints.push(format!("\"{}\"", self.sometimes.address()));
        }
        let extra = if number % 5 == 2 {
            format!(
                "[listener.extra]\nbind = \"{}\"\nto = \"web\"\n",
                self.extra
            )
        } else {
            String::new()
        };
        format!(
            "[listener.{}]\nbind = \"{}\"\nto = \"web\"\ntimeouts = {{ idle = \"{}m\" }}\n{extra}\
             [cluster.web]\nslow_start = \"1h\"\nejection = {{ failures = 1, base = \"1h\", max = \"1h\" }}\n\
             endpoints = [{}]\n",
            if number % 10 < 5 { "front" } else { "renamed" },
            self.front,
            60 + number % 5,
            endpoints.join(", ")
        )
    }
}

/// Two endpoints that are knocked at. The configurations are all different, and the endpoint `back` is the same in each.
fn warming_config(front: SocketAddr, steady: &Service, back: SocketAddr, number: usize) -> String {
    format!(
        "[listener.front]\nbind = \"{front}\"\nto = \"web\"\ntimeouts = {{ idle = \"{}m\" }}\n\
         [cluster.web]\nslow_start = \"{}s\"\nhealth = {{ check = \"tcp\", every = \"100ms\", rise = 1, fall = 1 }}\n\
         endpoints = [{{ name = \"steady\", address = \"{}\", weight = {} }}, {{ name = \"back\", address = \"{back}\" }}]\n",
        60 + number % 2,
        WARM_UP.as_secs(),
        steady.address(),
        1 + number % 3,
    )
}

/// What an endpoint has come to in its slow start, and between which moments that was so.
struct Warmth {
    asked: Instant,
    percent: u64,
    told: Instant,
}

impl Warmth {
    fn of(evenkeel: &Evenkeel, name: &str) -> Option<Self> {
        let asked = Instant::now();
        let endpoint = evenkeel.endpoint("web", name);
        Some(Self {
            asked,
            percent: endpoint["slow_start_percent"].as_u64()?,
            told: Instant::now(),
        })
    }

    /// From a tenth to all, in a straight line: whatever the machine's pace, what it has risen by is what the time between the two looks
    /// is worth.
    fn expect_straight_line_to(&self, later: &Self) {
        let worth = |time: Duration| 90.0 * time.as_secs_f64() / WARM_UP.as_secs_f64();
        let risen = later.percent as f64 - self.percent as f64;
        let least = worth(later.asked.saturating_duration_since(self.told)) - 1.0;
        let most = worth(later.told.duration_since(self.asked)) + 1.0;
        assert!(
            (least..=most).contains(&risen),
            "{risen} instead of {least} to {most}"
        );
    }
}

/// Clients at work.
struct Load {
    stopping: Arc<AtomicBool>,
    /// Held for each short connection; whoever writes has none of them under way.
    short_ones: Arc<RwLock<()>>,
    echoes: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<usize>>,
}

impl Load {
    fn start(front: SocketAddr) -> Self {
        let mut load = Self {
            stopping: Arc::default(),
            short_ones: Arc::default(),
            echoes: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..LONG / LONG_PER_THREAD {
            let sessions: Vec<TcpStream> = (0..LONG_PER_THREAD)
                .map(|_| client::connect(front))
                .collect();
            let (stopping, echoes) = (Arc::clone(&load.stopping), Arc::clone(&load.echoes));
            load.threads.push(std::thread::spawn(move || {
                keep_echoing(sessions, &stopping, &echoes)
            }));
        }
        for _ in 0..SHORT_THREADS {
            let (stopping, gate) = (Arc::clone(&load.stopping), Arc::clone(&load.short_ones));
            load.threads.push(std::thread::spawn(move || {
                keep_asking(front, &stopping, &gate)
            }));
        }
        load
    }

    /// Ends all clients, and gives the number of exchanges, none of which has failed.
    fn stop(self) -> usize {
        self.stopping.store(true, Ordering::Relaxed);
        let threads = self.threads.into_iter();
        threads
            .map(|thread| thread.join().expect("no client has failed"))
            .sum()
    }
}

fn keep_echoing(
    mut sessions: Vec<TcpStream>,
    stopping: &AtomicBool,
    echoes: &AtomicUsize,
) -> usize {
    let mut done = 0;
    while !stopping.load(Ordering::Relaxed) {
        for session in &mut sessions {
            client::echo(session, b"a message of 24 bytes...");
            done += 1;
        }
        echoes.fetch_add(sessions.len(), Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
    }
    done
}

fn keep_asking(front: SocketAddr, stopping: &AtomicBool, gate: &RwLock<()>) -> usize {
    let mut done = 0;
    while !stopping.load(Ordering::Relaxed) {
        let next = Instant::now() + SHORT_EVERY;
        let open = gate.read().expect("nobody panics with it");
        assert_eq!(client::ask(front, "a question"), "a question");
        drop(open);
        done += 1;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    done
}

/// What the process holds while only the long connections are there: descriptors, and memory in KiB.
fn holdings(evenkeel: &mut Evenkeel, load: &Load) -> (usize, u64) {
    let _no_short_ones = load.short_ones.write().expect("nobody panics with it");
    wait::until_so("only the long connections are there", || {
        let status = evenkeel.status();
        let workers = status["workers"].as_array().expect("a list");
        let sessions = workers
            .iter()
            .filter_map(|worker| worker["sessions"].as_u64());
        sessions.sum::<u64>() == LONG as u64
    });
    let process = evenkeel.process();
    (process.descriptors(), process.resident_kib())
}

/// What must not change of an endpoint that no reload changes.
fn kept(evenkeel: &Evenkeel, name: &str) -> Vec<Value> {
    let endpoint = evenkeel.endpoint("web", name);
    let fields = ["state", "weight", "effective_weight", "failures", "address"];
    fields.iter().map(|field| endpoint[field].clone()).collect()
}

/// Every tenth file is broken; each of the others adds or removes an endpoint or a listener, changes a weight, a name or a
/// timeout. No connection fails, unchanged endpoints keep all that is known of them, and the process holds no more after the
/// last reload than after the tenth.
#[test]
fn fault_5_a_hundred_reloads_cut_nothing() {
    let world = World::new();
    let mut evenkeel = Evenkeel::start(world.config(0));
    wait::until_so("the dead endpoint is ejected", || {
        client::ask(world.front, "hello");
        evenkeel.endpoint("web", "dead")["state"] == "ejected"
    });
    evenkeel.reloaded(&world.config(1));
    let load = Load::start(world.front);
    let known: Vec<_> = ["a", "dead", "warming"]
        .map(|name| (name, kept(&evenkeel, name)))
        .into();
    let mut counted = Vec::new();

    for number in 1..=RELOADS {
        if number % 10 == 9 {
            let output = evenkeel.reload("[listener.front]\nbind = 7\n");
            assert_eq!(output.status.code(), Some(3));
        } else {
            evenkeel.reloaded(&world.config(number));
        }
        if number == FIRST_COUNT || number == RELOADS {
            counted.push(holdings(&mut evenkeel, &load));
        }
    }

    for (name, before) in known {
        assert_eq!(kept(&evenkeel, name), before, "{name}");
    }
    let echoed = load.echoes.load(Ordering::Relaxed);
    wait::until_so("the long connections go on", || {
        load.echoes.load(Ordering::Relaxed) > echoed + LONG
    });
    let exchanges = load.stop();
    println!("{exchanges} exchanges, {counted:?} descriptors and KiB");
    let [(descriptors, memory), (descriptors_then, memory_then)] = counted[..] else {
        panic!("counted twice");
    };
    assert!(descriptors_then * 100 <= descriptors * 105, "{counted:?}");
    assert!(memory_then * 100 <= memory * 105, "{counted:?}");
}

/// An endpoint goes and comes back, and warms up: a hundred reloads, with clients at work, neither begin that anew nor shorten it.
#[test]
fn fault_20_a_hundred_reloads_leave_slow_start_alone() {
    let (steady, back, front) = (Service::echo(), ports::free(), ports::free());
    let first_life = Service::start_on(back, |stream, _| service::echo(stream));
    let config = |number| warming_config(front, &steady, back, number);
    let evenkeel = Evenkeel::start(config(0));
    let is = |state: &str| evenkeel.endpoint("web", "back")["state"] == state;
    wait::until_so("it is known", || is("up"));
    drop(first_life);
    wait::until_so("it is down", || is("down"));
    let _second_life = Service::start_on(back, |stream, _| service::echo(stream));
    let load = Load::start(front);
    let begun = wait::until("it has come some of the way", || {
        Warmth::of(&evenkeel, "back").filter(|warmth| warmth.percent >= 13)
    });

    for number in 1..=RELOADS {
        evenkeel.reloaded(&config(number));
        let now = Warmth::of(&evenkeel, "back").expect("it still warms up");
        begun.expect_straight_line_to(&now);
    }

    assert_eq!(evenkeel.endpoint("web", "steady")["state"], "up");
    load.stop();
}
