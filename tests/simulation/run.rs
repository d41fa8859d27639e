//! One run: chaos, then peace, then the question whether everything is as it was asked for.

use std::time::Duration;

use crate::hands::Trouble;
use crate::report::Outcome;
use crate::world::World;

/// How long nothing may change for peace to count: twelve full passes over everything, every full
/// verification, and the time after which crashes are forgiven.
const QUIET: Duration = Duration::from_secs(12 * 60);
/// Within this time of peace everything must have converged. The longest way is a replacement that
/// failed twice.
const BOUND: Duration = Duration::from_secs(60 * 60);
/// For how long rollouts are resumed while foreign containers are in the way.
const PATIENCE: Duration = Duration::from_secs(20 * 60);
/// How often it is looked.
const LOOK: Duration = Duration::from_secs(20);

/// Runs one seed in time of its own.
pub fn run(seed: u64, keep_all: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(simulate(seed, keep_all)),
        Err(error) => Outcome {
            seed,
            violation: Some(format!("no runtime: {error}")),
            trace: crate::report::Trace::default(),
        },
    }
}

async fn simulate(seed: u64, keep_all: bool) -> Outcome {
    let mut world = World::new(seed, keep_all);
    let profile = format!("{:?}", world.chaos.profile);
    world.line(&profile);
    world.prepare();
    world.begin(false);
    chaos(&mut world).await;
    if !world.is_broken() {
        peace(&mut world).await;
    }
    let (trace, violation) = world.finish();
    Outcome {
        seed,
        violation,
        trace,
    }
}

async fn chaos(world: &mut World) {
    let steps = world.chance.between(20, 80);
    let profile = std::sync::Arc::clone(&world.chaos.profile);
    let (mut away, mut store_away) = (0_u64, 0_u64);
    // Some begin with a service that has converged, others in the midst of it.
    let start = world.chance.some_time(60_000);
    world.wait(start).await;
    for _ in 0..steps {
        if world.is_broken() {
            return;
        }
        if away > 0 {
            away -= 1;
            if away == 0 {
                world.line("ENGINE back");
                world.fake.set_unavailable(false);
            }
        }
        if store_away > 0 {
            store_away -= 1;
            if store_away == 0 {
                world.line("DATABASE back");
                world.chaos.set_store_away(false);
            }
        }
        let choice = world.chance.below(100);
        if choice < profile.crashes {
            match world.chance.below(5) {
                0 => {
                    world.stop().await;
                    world.begin(false);
                }
                1 => {
                    world.crash().await;
                    let for_a_time = profile.takeovers && world.chance.per_mille(500);
                    world.begin(for_a_time);
                }
                _ => world.chaos.crash_after(world.chance.between(1, 60)),
            }
        } else if choice < profile.crashes + profile.by_hand {
            world.by_hand();
        } else if choice == 95 {
            world.line("DATABASE away");
            world.monitor().trace.count("database away");
            world.chaos.set_store_away(true);
            store_away = world.chance.between(1, 4);
        } else if choice >= 96 {
            if world.trouble() == Trouble::Away {
                away = world.chance.between(1, 4);
            }
        } else {
            world.write();
        }
        for _ in 0..world.skills.below(3) {
            world.about_skills();
        }
        let pause = match world.chance.below(10) {
            0..=3 => world.chance.some_time(50),
            4..=7 => world.chance.some_time(8_000),
            _ => world.chance.some_time(90_000),
        };
        world.wait(pause).await;
        world.check_skills();
    }
}

async fn peace(world: &mut World) {
    world.chaos.end();
    world.fake.set_unavailable(false);
    world.remove_lost_machines();
    world.publish_late_image();
    world.resume_everything();
    world.mend_configurations();
    world.cancel_removals();
    world.refresh_adapter();
    let foreign_stay = world.chance.per_mille(250);
    if !foreign_stay {
        world.remove_foreign();
    }
    world.settle_leadership().await;
    world.line("PEACE");
    let mut quiet = Duration::ZERO;
    let mut waited = Duration::ZERO;
    let mut last = world.progress();
    while quiet < QUIET {
        world.resume_rollouts(!foreign_stay || waited < PATIENCE);
        world.fake.reset_calls();
        world.wait(LOOK).await;
        world.check_skills();
        if world.is_broken() {
            return;
        }
        waited += LOOK;
        let now = world.progress();
        let still = now == last && (foreign_stay || world.fake.calls().writes() == 0);
        quiet = if still { quiet + LOOK } else { Duration::ZERO };
        last = now;
        if waited > BOUND + QUIET {
            let text = format!("I4: after {waited:?} of peace something is still being done");
            world.monitor().broken(text);
            return;
        }
    }
    world.line("QUIET");
    world.check_end();
}
