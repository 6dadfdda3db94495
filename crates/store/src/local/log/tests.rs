use std::fs;

use super::*;

const DATA: u8 = b'd';

fn group(number: u64, bytes: usize) -> Vec<DiskWrite> {
    vec![(vec![DATA, b'k'], Some(number.to_be_bytes().into_iter().cycle().take(bytes).collect()))]
}

/// Writes groups `from..=to` of `bytes` each, with the tables always at `checkpoint`.
fn write(log: &mut Log, from: u64, to: u64, bytes: usize, checkpoint: u64) {
    for number in from..=to {
        let writes = group(number, bytes);
        if !log.prepare(&writes) {
            log.switch_segment(checkpoint, &writes).unwrap();
        }
        log.commit(number, checkpoint).unwrap();
    }
}

fn revisions(contents: &Contents) -> Vec<u64> {
    contents.replay().map(|group| group.unwrap().0).collect()
}

fn read(dir: &Path) -> Contents {
    Log::read(dir).unwrap().unwrap()
}

fn is_damaged(dir: &Path) -> bool {
    match Log::read(dir) {
        Ok(_) => false,
        Err(DatabaseError::Damaged(_)) => true,
        Err(other) => panic!("{other:?}"),
    }
}

/// Changes the bytes of a segment.
fn edit(dir: &Path, segment: usize, change: impl FnOnce(&mut Vec<u8>)) {
    let file = file_name(dir, segment);
    let mut bytes = fs::read(&file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

#[test]
fn what_was_written_is_read_back_from_the_checkpoint_on() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Log::read(dir.path()).unwrap().is_none());
    let mut log = Log::begin(dir.path(), 5, Former::default()).unwrap();
    let contents = read(dir.path());
    assert_eq!((contents.checkpoint, contents.last, revisions(&contents)), (5, 5, vec![]));
    write(&mut log, 6, 20, 700, 5);
    write(&mut log, 21, 22, 700, 9);
    let contents = read(dir.path());
    assert_eq!((contents.checkpoint, contents.last), (9, 22));
    assert_eq!(revisions(&contents), (10..=22).collect::<Vec<_>>());
    assert_eq!(contents.replay().last().unwrap().unwrap().1, group(22, 700));
}

#[test]
fn a_write_that_was_cut_short_is_as_if_it_had_never_been() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::begin(dir.path(), 0, Former::default()).unwrap();
    write(&mut log, 1, 3, 3000, 0);
    let end = log.position;
    write(&mut log, 4, 4, 3000, 0);
    let whole = fs::read(file_name(dir.path(), 0)).unwrap();
    for sectors in 0..6 {
        // Of the last frame only some sectors came to the disk: the first ones, or the last ones.
        for front in [true, false] {
            let lost = if front {
                end + sectors * SECTOR..log.position
            } else {
                end..log.position - sectors * SECTOR
            };
            edit(dir.path(), 0, |bytes| bytes[lost].fill(0));
            let contents = read(dir.path());
            assert_eq!((contents.last, revisions(&contents)), (3, vec![1, 2, 3]), "{sectors} {front}");
            fs::write(file_name(dir.path(), 0), &whole).unwrap();
        }
    }
    assert_eq!(read(dir.path()).last, 4);
}

#[test]
fn a_flipped_bit_before_the_last_group_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::begin(dir.path(), 0, Former::default()).unwrap();
    write(&mut log, 1, 4, 1000, 0);
    let last = log.position;
    write(&mut log, 5, 5, 1000, 0);
    // Behind the first frame, which is empty, each has 1074 bytes and is filled up to three sectors.
    let says_something = |place: usize| match place.checked_sub(SECTOR) {
        None => place < 64,
        Some(place) => place % (3 * SECTOR) < 64 + 8 + 2 + 1000,
    };
    for place in (0..last).step_by(37) {
        edit(dir.path(), 0, |bytes| bytes[place] ^= 1);
        assert_eq!(is_damaged(dir.path()), says_something(place), "byte {place}");
        edit(dir.path(), 0, |bytes| bytes[place] ^= 1);
    }
    assert_eq!(revisions(&read(dir.path())), [1, 2, 3, 4, 5]);
    // Zeros where groups were, a hole, are damage as well.
    for hole in [0..SECTOR, 2 * SECTOR..3 * SECTOR, SECTOR..last] {
        let whole = fs::read(file_name(dir.path(), 0)).unwrap();
        edit(dir.path(), 0, |bytes| bytes[hole.clone()].fill(0));
        assert!(is_damaged(dir.path()), "{hole:?}");
        fs::write(file_name(dir.path(), 0), whole).unwrap();
    }
}

#[test]
fn segments_take_turns_and_nothing_old_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::begin(dir.path(), 0, Former::default()).unwrap();
    // The tables are always two groups behind; a segment holds 15 groups.
    for number in 1..=70_u64 {
        write(&mut log, number, number, 1 << 20, number.saturating_sub(2));
        if !(number % 15).is_multiple_of(4) {
            continue; // Reading takes its time without optimisation.
        }
        let contents = read(dir.path());
        let first = number.saturating_sub(2) + 1;
        assert_eq!(revisions(&contents), (first..=number).collect::<Vec<_>>());
    }
    let sizes: Vec<_> =
        (0..SEGMENTS).map(|segment| fs::metadata(file_name(dir.path(), segment)).unwrap().len()).collect();
    assert!(sizes.iter().all(|size| *size <= SEGMENT_BYTES as u64), "{sizes:?}");
}

#[test]
fn both_segments_are_read_when_the_tables_are_far_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::begin(dir.path(), 0, Former::default()).unwrap();
    write(&mut log, 1, 20, 1 << 20, 0);
    assert_eq!(revisions(&read(dir.path())), (1..=20).collect::<Vec<_>>());

    // The older one is needed, so it must be whole.
    let older = fs::read(file_name(dir.path(), 0)).unwrap();
    edit(dir.path(), 0, |bytes| bytes[5 << 20] ^= 1);
    assert!(is_damaged(dir.path()));
    edit(dir.path(), 0, |bytes| bytes[..4096].fill(0));
    assert!(is_damaged(dir.path()));
    fs::write(file_name(dir.path(), 0), older).unwrap();

    // A new generation begins in it only when that is written down.
    let former = read(dir.path()).former();
    drop(Log::begin(dir.path(), 20, former).unwrap());
    edit(dir.path(), 0, |bytes| bytes[..SECTOR].fill(0)); // As if that had been cut short.
    let contents = read(dir.path());
    assert_eq!((contents.checkpoint, contents.last, revisions(&contents)), (20, 20, vec![]));
}

#[test]
fn a_segment_is_sealed_before_the_other_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::begin(dir.path(), 0, Former::default()).unwrap();
    write(&mut log, 1, 15, 1 << 20, 0);
    // No group of the second segment tells that the tables have all of the first.
    write(&mut log, 16, 30, 1 << 20, 0);
    assert_eq!((log.active, log.generation), (1, 2));
    let writes = group(31, 1 << 20);
    assert!(!log.prepare(&writes));
    log.switch_segment(15, &writes).unwrap();
    log.commit(31, 15).unwrap();
    assert_eq!((log.active, log.generation, read(dir.path()).last), (0, 3, 31));
    edit(dir.path(), 0, |bytes| bytes[..SECTOR].fill(0));
    let contents = read(dir.path());
    assert_eq!((contents.checkpoint, revisions(&contents)), (15, (16..=30).collect::<Vec<_>>()));
}

#[test]
fn a_log_that_lost_its_last_segment_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::begin(dir.path(), 0, Former::default()).unwrap();
    write(&mut log, 1, 18, 1 << 20, 14);
    edit(dir.path(), 1, |bytes| bytes[..SECTOR].fill(0)); // The first group of it.
    assert!(is_damaged(dir.path()), "those behind it are of a later generation than all that is whole");
}

#[test]
fn whatever_a_forgotten_log_holds_is_older_than_the_next_generation() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = Log::begin(dir.path(), 0, Former::default()).unwrap();
    write(&mut log, 1, 30, 1 << 20, 29);
    edit(dir.path(), 0, |bytes| bytes[..SECTOR].fill(1));
    edit(dir.path(), 1, |bytes| bytes[..SECTOR].fill(1));
    let mut log = Log::begin(dir.path(), 30, Log::forget(dir.path()).unwrap()).unwrap();
    assert_eq!(log.generation, 3);
    write(&mut log, 31, 31, 100, 30);
    assert_eq!(revisions(&read(dir.path())), [31]);
}
