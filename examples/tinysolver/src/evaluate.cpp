// The value of an expression, if it has one.
#include "expression.h"

namespace {

bool combine(char op, long left, long right, long& result) {
  switch (op) {
    case '+': result = left + right; return true;
    case '-': result = left - right; return true;
    case '<': result = left < right; return true;
    case '>': result = left > right; return true;
    case '=': result = left == right; return true;
    case '&': result = left && right; return true;
    case '|': result = left || right; return true;
    default: return false;
  }
}

}  // namespace

bool evaluate(const Node& node, const Values& values, long& result) {
  if (node->op == 'n') {
    result = node->number;
    return true;
  }
  if (node->op == 'v') {
    auto found = values.find(node->name);
    if (found == values.end()) return false;
    result = found->second;
    return true;
  }
  long left = 0, right = 0;
  return evaluate(node->left, values, left) && evaluate(node->right, values, right) &&
         combine(node->op, left, right, result);
}
