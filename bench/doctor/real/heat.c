// Relaxes the temperatures of a square plate with hot edges, by the method of Jacobi: heat STEPS

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 200 };

static double plates[2][SIZE][SIZE];

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  for (int i = 0; i < SIZE; i++) plates[0][0][i] = plates[1][0][i] = 100.0;
  double change = 0.0;
  for (int step = 0; step < atoi(argv[1]); step++) {
    double(*old)[SIZE] = plates[step % 2], (*new)[SIZE] = plates[1 - step % 2];
#pragma omp parallel for
    for (int y = 1; y < SIZE - 1; y++)
      for (int x = 1; x < SIZE - 1; x++)
        new[y][x] = 0.25 * (old[y - 1][x] + old[y + 1][x] + old[y][x - 1] + old[y][x + 1]);
    if (step % 10) continue;
    change = 0.0;
#pragma omp parallel for reduction(max : change)
    for (int y = 1; y < SIZE - 1; y++)
      for (int x = 1; x < SIZE - 1; x++) change = fmax(change, fabs(new[y][x] - old[y][x]));
  }
  printf("%.9f\n", change);
}
