-- What every connection begins with. Nothing is waited for longer than the source allows, this session is the one to
-- give way in a deadlock, and long values come whole as far as the statements themselves let them.
SET NOCOUNT ON;
SET LOCK_TIMEOUT {lock_timeout};
SET DEADLOCK_PRIORITY LOW;
SET TEXTSIZE 2147483647;
SET DATEFORMAT ymd;
SET IMPLICIT_TRANSACTIONS OFF;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
