// A line each: `var x 0 9`, `simplify`, `assert x + 2 < 7`.
#include "expression.h"

#include <cctype>
#include <cstdlib>
#include <sstream>

namespace {

struct Reader {
  std::string text;
  size_t place = 0;

  char peek() {
    while (place < text.size() && std::isspace(static_cast<unsigned char>(text[place]))) ++place;
    return place < text.size() ? text[place] : '\0';
  }
};

int level(char op) {
  switch (op) {
    case '|': return 1;
    case '&': return 2;
    case '<': case '>': case '=': return 3;
    case '+': case '-': return 4;
    case '*': return 5;
    default: return 0;
  }
}

Node expression(Reader& in, int least, int depth);

Node atom(Reader& in, int depth) {
  char next = in.peek();
  if (depth > 200) return nullptr;
  if (next == '(') {
    ++in.place;
    Node inner = expression(in, 1, depth + 1);
    if (!inner || in.peek() != ')') return nullptr;
    ++in.place;
    return inner;
  }
  size_t start = in.place;
  while (in.place < in.text.size() &&
         std::isalnum(static_cast<unsigned char>(in.text[in.place]))) ++in.place;
  std::string word = in.text.substr(start, in.place - start);
  if (word.empty() || word.size() > 9) return nullptr;
  auto node = std::make_shared<Expression>();
  bool digits = std::isdigit(static_cast<unsigned char>(word[0]));
  node->op = digits ? 'n' : 'v';
  if (digits) node->number = std::strtol(word.c_str(), nullptr, 10);
  node->name = word;
  return node;
}

Node expression(Reader& in, int least, int depth) {
  Node left = atom(in, depth);
  while (left && level(in.peek()) >= least) {
    char op = in.peek();
    ++in.place;
    Node right = expression(in, level(op) + 1, depth + 1);
    if (!right) return nullptr;
    auto node = std::make_shared<Expression>();
    node->op = op;
    node->left = left;
    node->right = right;
    left = node;
  }
  return left;
}

}  // namespace

bool parse(const std::string& text, Problem& problem, std::string& error) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first.empty() || first[0] == ';') continue;
    if (first == "simplify") {
      problem.simplify = true;
    } else if (first == "var") {
      std::string name;
      long low = 0, high = 0;
      if (!(words >> name >> low >> high) || high < low || high - low > 20 ||
          problem.names.size() >= 4) {
        error = "bad range";
        return false;
      }
      problem.names.push_back(name);
      problem.ranges.push_back({low, high});
    } else if (first == "assert") {
      Reader in{line.substr(line.find("assert") + 6)};
      Node claim = expression(in, 1, 0);
      if (!claim || in.peek() != '\0') {
        error = "bad expression";
        return false;
      }
      problem.claims.push_back(claim);
    } else {
      error = "unknown word";
      return false;
    }
  }
  return true;
}
