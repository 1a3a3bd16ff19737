# make compiles 20 files in C, without -j.
#
# fixed and twin: make -j2.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need make gcc

# Writes a project: a library of sorting functions for records of different sizes, and a Makefile.
prepare() {
  local i
  for ((i = 1; i <= 20; i++)); do
    sed "s/SIZE/$((i + 3))/g" "$here/sort_records.c.in" >"$folder/sort_$i.c"
  done
  cat >"$folder/Makefile" <<'EOF'
objects := $(patsubst %.c,%.o,$(wildcard sort_*.c))
CFLAGS := -O2
libsort.a: $(objects)
	$(AR) rc $@ $^
EOF
}
build() { # options of make
  rm -f "$folder"/*.o "$folder/libsort.a"
  make --directory "$folder" --silent "$@"
}
sick() { build; }
fixed() { build -j2; }
twin() { build -j2; }

run "$@"
