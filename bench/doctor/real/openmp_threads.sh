# Relaxes a temperature field with OpenMP, with OMP_NUM_THREADS=8 on two CPUs. Each step ends with a
# barrier of all threads.
#
# fixed: OMP_NUM_THREADS=2.

# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
need gcc

prepare() { gcc -O2 -fopenmp -o "$folder/heat" "$here/heat.c" -lm; }
sick() { OMP_NUM_THREADS=8 "$folder/heat" 30000; }
fixed() { OMP_NUM_THREADS=2 "$folder/heat" 30000; }

run "$@"
