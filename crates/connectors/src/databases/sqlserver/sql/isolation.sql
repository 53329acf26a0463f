-- Before rows are read, not before the catalogue is: readers do not hold up writers where the database keeps snapshots.
IF (SELECT d.snapshot_isolation_state FROM sys.databases AS d WHERE d.database_id = DB_ID()) = 1
    SET TRANSACTION ISOLATION LEVEL SNAPSHOT;
