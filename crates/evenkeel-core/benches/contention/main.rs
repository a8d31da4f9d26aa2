//! What it costs that workers share a cluster: `acquire` and `finish` by 1 to 8 threads at once, and what follows for more cores.
//!
//! Between two picks each thread works for itself, for a time that is varied: with none, one sees the rate at which a
//! cluster saturates; with much, what a pick costs whose cache lines were last written by another core. [`model`] is
//! fitted to that and predicts 2, 16 and 64 cores; [`simulation`] shows how long one waits there. Run with
//! `cargo xtask bench contention`. What was measured, and what it cannot show, stands in `docs/scaling.md`.

#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and its arguments"
)]

mod measure;
mod model;
mod simulation;

use measure::{ALGORITHMS, Measured, THREADS, WORK};
use model::{Load, Model};

fn main() {
    // `cargo test --all-targets` runs benches too, without this argument.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("measures nothing unless asked to: cargo xtask bench contention");
        return;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let measured = measure::all(cores);
    for (algorithm, (name, _)) in ALGORITHMS.iter().enumerate() {
        print_measured(name, &measured, algorithm);
    }
    println!(
        "\n{} of these cells, with no more threads than cores, were disturbed by other programs and are not fitted",
        measured.disturbed_cells(cores)
    );
    if cores < 2 {
        println!("one core: nothing is shared here, so there is nothing to fit");
        return;
    }
    let models: Vec<Model> = (0..ALGORITHMS.len())
        .map(|algorithm| Model::fit(&points(&measured, algorithm, cores)))
        .collect();
    print_models(&models, &measured, cores);
    print_predictions(&models);
    print_simulations(&models);
}

/// One table: private work down, threads across.
fn print_measured(name: &str, measured: &Measured, algorithm: usize) {
    println!(
        "\n{name}: million picks a second | nanoseconds of processor time for a pick and its private work"
    );
    print!("{:>12}", "work, ns");
    for threads in THREADS {
        print!("{:>18}", format!("{threads} threads"));
    }
    println!();
    for (row, work) in WORK.iter().enumerate() {
        print!("{work:>12}");
        for column in 0..THREADS.len() {
            let sample = measured.median(algorithm, row, column);
            print!(
                "{:>9.2} |{:>7.0}",
                sample.rate / 1e6,
                sample.processor_nanos
            );
        }
        println!();
    }
}

/// The private work, in nanoseconds, from which on the model is fitted. A connection has 50 times as much. With less, threads that
/// meet at a lock wait for so long that its owner takes it many times in a row, and nothing moves between the cores.
const FITTED_FROM: u32 = 1000;

/// What the model is fitted to: no more threads than cores, and enough private work.
fn points(measured: &Measured, algorithm: usize, cores: usize) -> Vec<model::Point> {
    let mut points = Vec::new();
    for row in (0..WORK.len()).filter(|&row| WORK[row] >= FITTED_FROM) {
        let alone = measured.median(algorithm, row, 0).cycle_nanos(1);
        for (column, &threads) in THREADS.iter().enumerate() {
            let is_sound =
                measured.is_sound(algorithm, row, 0) && measured.is_sound(algorithm, row, column);
            if (2..=cores).contains(&threads) && is_sound {
                points.push(model::Point {
                    threads,
                    alone,
                    together: measured.median(algorithm, row, column).cycle_nanos(threads),
                });
            }
        }
    }
    points
}

fn print_models(models: &[Model], measured: &Measured, cores: usize) {
    println!(
        "\nfitted: nanoseconds in series, nanoseconds for lines that another core has, residual of each point in %"
    );
    for (algorithm, model) in models.iter().enumerate() {
        print!(
            "{:<20}{:>8.0}{:>8.0}   ",
            ALGORITHMS[algorithm].0, model.serial, model.transfer
        );
        for point in points(measured, algorithm, cores) {
            print!("{:>7.1}", 100.0 * model.residual(&point));
        }
        println!();
    }
}

/// With lines as near as measured, and as far as assumed.
fn print_predictions(models: &[Model]) {
    for load in [Load::CONNECTION_PER_REQUEST, Load::LONG_CONNECTIONS] {
        println!(
            "\n{}: thousand connections a second by cores, and the part of them that sharing takes, lines near to far",
            load.name
        );
        for (model, (name, _)) in models.iter().zip(ALGORITHMS) {
            print!("{name:<20}");
            for cores in model::CORES {
                let near = model.predict(cores, 1.0, &load);
                let far = model.predict(cores, model::distance(cores), &load);
                print!(
                    "{cores:>6}: {:>7.1} to {:>6.1}",
                    near.rate / 1e3,
                    far.rate / 1e3
                );
                print!(" {:>5.2} to {:>5.2} %", 100.0 * near.lost, 100.0 * far.lost);
            }
            let [near, far] =
                [1.0, model::distance(64)].map(|distance| model.ceiling(distance) / 1e6);
            println!("   at most {near:.1} to {far:.1} million a second");
        }
    }
}

fn print_simulations(models: &[Model]) {
    println!(
        "\nsimulated, seed {}: one lock, {} us of private work for a connection",
        simulation::SEED,
        Load::CONNECTION_PER_REQUEST.private_nanos / 1e3
    );
    println!(
        "{:<20}{:>6}{:>12}{:>16}{:>14}{:>14}",
        "lock of", "cores", "held, ns", "thousand/s", "mean wait, ns", "99 %, ns"
    );
    for (model, (name, _)) in models.iter().zip(ALGORITHMS) {
        for cores in model::CORES {
            let held = model.serial * model::distance(cores);
            let run = simulation::run(cores, held, Load::CONNECTION_PER_REQUEST.private_nanos);
            println!(
                "{name:<20}{cores:>6}{held:>12.0}{:>16.1}{:>14.0}{:>14.0}",
                run.rate / 1e3,
                run.mean_wait,
                run.wait_99
            );
        }
    }
}
