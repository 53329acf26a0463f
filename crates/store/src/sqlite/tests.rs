//! What is SQLite's own: statements, migrations, the lock, a full disk.
