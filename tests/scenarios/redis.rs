//! A real Redis behind evenkeel, with Redis's own tools in front.

use crate::support::evenkeel::Evenkeel;
use crate::support::ports;
use crate::support::redis::{Redis, run_tool};

/// Redis's own benchmark runs through the balancer, pipelined too, and what was stored through it is what the server has.
#[test]
fn redis_and_its_benchmark_work() {
    let (redis, front) = (Redis::start(), ports::free());
    let evenkeel = Evenkeel::start(format!(
        r#"
        [listener.redis]
        bind = "{front}"
        to = "cache"
        [cluster.cache]
        endpoints = [{{ name = "redis", address = "{}" }}]
        "#,
        redis.address,
    ));

    let quick = [
        "-q",
        "-n",
        "5000",
        "-c",
        "50",
        "-t",
        "set,get,lpush,mset",
        "-d",
        "1024",
    ];
    let printed = run_tool("redis-benchmark", front, &quick);
    assert_eq!(
        printed.matches("requests per second").count(),
        4,
        "{printed}"
    );
    run_tool(
        "redis-benchmark",
        front,
        &["-q", "-n", "20000", "-P", "16", "-t", "set,get"],
    );

    let long = "value ".repeat(10_000);
    run_tool("redis-cli", front, &["SET", "long", &long]);
    assert_eq!(
        run_tool("redis-cli", redis.address, &["GET", "long"]),
        long.trim_end()
    );
    assert_eq!(
        run_tool("redis-cli", front, &["GET", "long"]),
        long.trim_end()
    );
    evenkeel.wait_until_idle("cache");
}
