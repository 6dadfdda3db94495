//! Opens the store at the start: the tables of the database, plus the groups in the log that the tables lack.
//!
//! The tables have every commit up to the log's checkpoint, and none that is not in the log. So the tables and the groups
//! after the checkpoint together are the store, whatever a crash left behind in other files.

use tracing::info;

use super::{
    data_dir::{DataDir, sync_directory},
    database_error::DatabaseError,
    engine::Engine,
    high_water_mark::HighWaterMark,
    journals,
    log::{Contents, Former, Log},
    shared_state::DatabaseKind,
};

/// A database, and its log, which is empty: the tables have everything. A node of a cluster has none.
pub(super) struct Opened {
    pub(super) engine: Engine,
    pub(super) log: Option<Log>,
    pub(super) revision: u64,
}

/// Opens or creates the store in `dir`, and makes sure that it is the one that was left there.
pub(super) fn open(dir: &DataDir, kind: DatabaseKind) -> Result<Opened, DatabaseError> {
    let mark = HighWaterMark::read(dir.path())?;
    if !dir.database().exists() {
        if let Some(HighWaterMark { revision, .. }) = mark {
            return Err(DatabaseError::Damaged(format!(
                "{} once had {revision} commits and has no database",
                dir.path().display()
            )));
        }
        Engine::create(dir)?;
        return begin(dir, kind, Engine::open(&dir.database())?, Log::forget(dir.path())?);
    }
    let contents = if mark.is_none() { Log::read(dir.path())? } else { None };
    let (engine, former) = match (mark, contents) {
        (Some(mark), _) if mark.log => after_a_stop(dir, mark)?,
        (None, Some(contents)) => (replay(dir, &contents, 0)?, contents.former()),
        _ => {
            let engine = by_journals(dir, mark)?;
            let engine = if kind == DatabaseKind::Own { into_tables(dir, engine)? } else { engine };
            (engine, Log::forget(dir.path())?)
        }
    };
    begin(dir, kind, engine, former)
}

/// Makes the store ready for use. With a log to begin, the tables have all of it.
fn begin(dir: &DataDir, kind: DatabaseKind, engine: Engine, former: Former) -> Result<Opened, DatabaseError> {
    let begun = engine.revision().and_then(|revision| {
        let log = match kind {
            DatabaseKind::Own => Some(Log::begin(dir.path(), revision, former)?),
            DatabaseKind::Node => None,
        };
        HighWaterMark { revision, closed: false, log: log.is_some() }.write(dir.path())?;
        if log.is_none() {
            Log::remove(dir.path())?; // What a store of its own may have left would be older than the database.
        }
        sync_directory(dir.path())?;
        Ok((log, revision))
    });
    match begun {
        Ok((log, revision)) => {
            let engine = if log.is_some() { engine } else { engine.keep_journal() };
            Ok(Opened { engine, log, revision })
        }
        Err(trouble) => {
            engine.close();
            Err(trouble)
        }
    }
}

fn after_a_stop(dir: &DataDir, mark: HighWaterMark) -> Result<(Engine, Former), DatabaseError> {
    if let Some(found) = closed(dir, mark)? {
        return Ok(found);
    }
    let Some(contents) = Log::read(dir.path())? else {
        return Err(DatabaseError::Damaged(format!(
            "{} is missing or empty",
            Log::path(dir.path()).display()
        )));
    };
    Ok((replay(dir, &contents, mark.revision)?, contents.former()))
}

/// The database of a store that was closed in order, if that is what it is: then the log has nothing to add.
fn closed(dir: &DataDir, mark: HighWaterMark) -> Result<Option<(Engine, Former)>, DatabaseError> {
    if !mark.closed {
        return Ok(None);
    }
    let engine = Engine::open(&dir.database())?;
    match engine.revision() {
        Ok(revision) if revision == mark.revision => Ok(Some((engine, Log::forget(dir.path())?))),
        _ => {
            engine.close();
            Ok(None)
        }
    }
}

/// The database with every commit that is in the log, all of it in tables. `known` was once there for sure.
pub(super) fn replay(dir: &DataDir, contents: &Contents, known: u64) -> Result<Engine, DatabaseError> {
    if contents.last < known {
        return Err(DatabaseError::CutShort { found: contents.last, known });
    }
    let engine = Engine::open(&dir.database())?;
    let done = replay_into(&engine, contents);
    match done {
        Ok(()) => Ok(engine),
        Err(trouble) => {
            engine.close();
            Err(trouble)
        }
    }
}

/// Opens a store of its own to be read: the tables, and in memory what the log has besides. Nothing of it changes.
pub(super) fn open_to_read(dir: &DataDir) -> Result<Engine, DatabaseError> {
    let mark = HighWaterMark::read(dir.path())?;
    let contents = if mark.is_some_and(|mark| mark.closed) { None } else { Log::read(dir.path())? };
    let engine = Engine::open_to_read(&dir.database())?;
    let done = engine.is_of_a_cluster().and_then(|cluster| match contents {
        _ if cluster => Err(DatabaseError::OfACluster),
        Some(contents) => apply_log(&engine, &contents).map(drop),
        None => match (engine.revision()?, mark) {
            (found, Some(mark)) if found < mark.revision => {
                Err(DatabaseError::CutShort { found, known: mark.revision })
            }
            _ => Ok(()),
        },
    });
    match done {
        Ok(()) => Ok(engine),
        Err(trouble) => {
            engine.close();
            Err(trouble)
        }
    }
}

fn replay_into(engine: &Engine, contents: &Contents) -> Result<(), DatabaseError> {
    let groups = apply_log(engine, contents)?;
    engine.settle()?;
    if groups > 0 {
        info!(groups, revision = contents.last, "What the log held was brought into the database.");
    }
    Ok(())
}

/// Brings what the log has besides the tables into the database, and says how many groups that were.
fn apply_log(engine: &Engine, contents: &Contents) -> Result<u64, DatabaseError> {
    let found = engine.revision()?;
    if found < contents.checkpoint {
        return Err(DatabaseError::CutShort { found, known: contents.checkpoint });
    }
    if found > contents.last {
        return Err(DatabaseError::CutShort { found: contents.last, known: found });
    }
    let mut groups = 0_u64;
    for group in contents.replay() {
        let (revision, writes) = group?;
        engine.apply(&writes, revision)?;
        groups += 1;
    }
    let revision = engine.revision()?;
    if revision != contents.last {
        return Err(DatabaseError::CutShort { found: revision, known: contents.last });
    }
    Ok(groups)
}

/// A database that its journals make durable: a node of a cluster, or a store from before there were logs.
fn by_journals(dir: &DataDir, mark: Option<HighWaterMark>) -> Result<Engine, DatabaseError> {
    let database = dir.database();
    if !mark.is_some_and(|mark| mark.closed) {
        // Again if need be: the first attempt may only have learned of a failure before our time.
        journals::write_again(&database).or_else(|_| journals::write_again(&database))?;
    }
    let engine = Engine::open_with_journals(&database)?;
    let checked = engine.revision().and_then(|revision| match mark {
        Some(mark) if revision < mark.revision => {
            Err(DatabaseError::CutShort { found: revision, known: mark.revision })
        }
        _ => Ok(()),
    });
    match checked {
        Ok(()) => Ok(engine),
        Err(trouble) => {
            engine.close();
            Err(trouble)
        }
    }
}

/// Writes everything to tables, so that a log can begin.
fn into_tables(dir: &DataDir, engine: Engine) -> Result<Engine, DatabaseError> {
    let settled = match engine.is_of_a_cluster() {
        Ok(true) => Err(DatabaseError::OfACluster),
        Ok(false) => engine.settle(),
        Err(trouble) => Err(trouble),
    };
    engine.close();
    settled?;
    Engine::open(&dir.database())
}
