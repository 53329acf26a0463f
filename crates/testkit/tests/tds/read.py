"""Reads a table with python-tds, and prints each value as JSON: what an independent client makes of our server.

Arguments: port, database, table, whether the connection is encrypted (a file of authorities, or nothing).
"""

import datetime
import decimal
import json
import sys
import uuid

import pytds


def plain(value):
    """A value as text that is the same whatever read it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (bytes, bytearray)):
        return "0x" + bytes(value).hex().upper()
    if isinstance(value, uuid.UUID):
        return str(value).upper()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def main():
    port, user, password, database, statement, authorities = sys.argv[1:7]
    # Its check of names needs an older OpenSSL; the authority is checked.
    encrypted = {"cafile": authorities, "validate_host": False} if authorities else {}
    with pytds.connect(
        dsn="localhost", port=int(port), user=user, password=password, database=database, login_timeout=20,
        timeout=20, appname="python-tds", autocommit=True, **encrypted
    ) as connection:
        with connection.cursor() as cursor:
            parameters = json.loads(sys.argv[7]) if len(sys.argv) > 7 else ()
            cursor.execute(statement, parameters)
            rows = [[plain(value) for value in row] for row in cursor.fetchall()]
            names = [column[0] for column in cursor.description]
    json.dump({"names": names, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    try:
        main()
    except pytds.Error as error:
        json.dump({"error": str(error), "number": getattr(error, "number", None)}, sys.stdout)
