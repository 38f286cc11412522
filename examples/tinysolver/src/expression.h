// Expressions over small integers, and what can be done with them.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

struct Expression;
using Node = std::shared_ptr<Expression>;
using Values = std::map<std::string, long>;

struct Expression {
  char op = 0;  // 'n' a number, 'v' a variable, else + - * < > = & |
  long number = 0;
  std::string name;
  Node left, right;
};

struct Problem {
  std::vector<std::string> names;
  std::vector<std::pair<long, long>> ranges;
  std::vector<Node> claims;
  bool simplify = false;
};

bool parse(const std::string& text, Problem& problem, std::string& error);
bool evaluate(const Node& node, const Values& values, long& result);
