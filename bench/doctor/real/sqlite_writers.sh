# Four sqlite3 processes insert rows into one database, one transaction for each row. A process that
# finds the database locked sleeps for up to 100 ms and tries again, up to its busy time-out.
#
# fixed: one transaction for 100 rows.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need sqlite3

readonly WRITERS=4
readonly ROWS=900

prepare() { :; }

# Prints the SQL of one writer.
inserts() { # number of the writer, rows of a transaction
  awk -v writer="$1" -v rows="$ROWS" -v batch="$2" 'BEGIN {
    print ".timeout 20000"
    for (row = 1; row <= rows; row++) {
      if (batch > 1 && row % batch == 1) print "BEGIN IMMEDIATE;"
      printf "INSERT INTO events (writer, number, payload) VALUES (%d, %d, \"order %d of shop %d\");\n",
        writer, row, row * 7919, writer
      if (batch > 1 && (row % batch == 0 || row == rows)) print "COMMIT;"
    }
  }'
}

write_all() { # rows of a transaction
  local writer
  rm -f "$folder"/events.db*
  sqlite3 "$folder/events.db" 'CREATE TABLE events (id INTEGER PRIMARY KEY, writer, number, payload);
    CREATE INDEX by_writer ON events (writer, number);'
  for ((writer = 0; writer < WRITERS; writer++)); do
    inserts "$writer" "$1" >"$folder/$writer.sql"
    sqlite3 "$folder/events.db" <"$folder/$writer.sql" &
  done
  wait
  sqlite3 "$folder/events.db" 'SELECT count(*) FROM events'
}
sick() { write_all 1; }
fixed() { write_all 100; }

run "$@"
