// tinysolve FILE: sat, unsat, or unsupported (exit code 2).
#include <cstdio>
#include <fstream>
#include <sstream>

#include "expression.h"

static bool holds(const Problem& problem, const Values& values) {
  for (const Node& claim : problem.claims) {
    long result = 0;
    if (!evaluate(claim, values, result) || !result) return false;
  }
  return true;
}

static bool search(const Problem& problem, size_t depth, Values& values) {
  if (depth == problem.names.size()) return holds(problem, values);
  for (long value = problem.ranges[depth].first; value <= problem.ranges[depth].second; ++value) {
    values[problem.names[depth]] = value;
    if (search(problem, depth + 1, values)) return true;
  }
  return false;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  Problem problem;
  std::string error;
  if (!parse(text.str(), problem, error)) {
    std::printf("unsupported: %s\n", error.c_str());
    return 2;
  }
  Values values;
  std::puts(search(problem, 0, values) ? "sat" : "unsat");
  return 0;
}
