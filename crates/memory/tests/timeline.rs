//! The timeline in words.

#[path = "browser/recording.rs"]
#[allow(dead_code, reason = "pages need more of it")]
mod recording;

use recording::{Recording, training};

#[test]
fn words_by_hand() {
    let mut r = Recording::new("two layers");
    r.before();
    // 1 MiB of 512 x 512 floats each.
    for layer in 0..2 {
        r.alloc(&format!("layers.{layer}.weight"), "load", 3, &[512, 512]);
    }
    r.begin();
    r.wait(1_000_000);
    let scratch = r.alloc("", "matmul", 7, &[512, 1024]);
    let kept = r.alloc("kept", "zeros", 8, &[256, 256]);
    r.wait(1_000_000);
    r.free(scratch);
    let mut timeline = r.stop();
    assert_eq!(
        timeline.to_string(),
        "two layers: 2.0 ms, 10 events\n  \
           cpu allocated  2 MiB -> 2.25 MiB, peak 4.25 MiB at 1.0 ms\n  \
           cpu reserved   64 MiB -> 64 MiB, peak 64 MiB at 0 ns\n\
         at the peak of cpu, 4 storages (4.25 MiB):\n     \
              2 MiB  2 storages  \"layers.*.weight\"  load at examples/train.rs:3:17\n     \
              2 MiB  1 storage  matmul at examples/train.rs:7:17\n   \
            256 KiB  1 storage  \"kept\"  zeros at examples/train.rs:8:17\n\
         made meanwhile on cpu and still there, 1 storage (256 KiB):\n   \
            256 KiB  1 storage  \"kept\"  zeros at examples/train.rs:8:17\n"
    );
    timeline.lost = 1;
    assert!(
        timeline
            .to_string()
            .contains("1 event could not be written")
    );
    let _ = kept;
}

#[test]
fn lines_fit() {
    let mut timeline = training(2);
    timeline.strings[3] = "a long name ".repeat(40);
    let text = timeline.to_string();
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(text.contains(" other line"));
    // What the lists say adds up to the figures.
    let peak = timeline.devices[0].peak;
    let sums = timeline
        .by_line(timeline.live_at(0, peak.time.unwrap()))
        .unwrap();
    assert_eq!(sums.iter().map(|s| s.bytes).sum::<u64>(), peak.allocated);
    assert!(sums.windows(2).all(|w| w[0].bytes >= w[1].bytes));
}
