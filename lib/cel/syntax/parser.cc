#include "lib/cel/syntax/parser.h"

#include <fmt/format.h>

#include "lib/cel/syntax/escaping.h"
#include "lib/cel/syntax/macros.h"
#include "lib/cel/syntax/parser_rules.h"

namespace keelson::cel {
namespace {

using K = TokenKind;

std::string_view RelationOperator(K kind) {
  switch (kind) {
    case K::kEquals:
      return operators::kEquals;
    case K::kNotEquals:
      return operators::kNotEquals;
    case K::kIn:
      return operators::kIn;
    case K::kLess:
      return operators::kLess;
    case K::kLessEquals:
      return operators::kLessEquals;
    case K::kGreaterEquals:
      return operators::kGreaterEquals;
    case K::kGreater:
      return operators::kGreater;
    default:
      return {};
  }
}

std::string_view CalcOperator(K kind, bool product) {
  switch (kind) {
    case K::kStar:
      return product ? operators::kMultiply : std::string_view();
    case K::kSlash:
      return product ? operators::kDivide : std::string_view();
    case K::kPercent:
      return product ? operators::kModulo : std::string_view();
    case K::kPlus:
      return product ? std::string_view() : operators::kAdd;
    case K::kMinus:
      return product ? std::string_view() : operators::kSubtract;
    default:
      return {};
  }
}

}  // namespace

bool Parser::Depth::Add() {
  ++count_;
  if (++parser_.depth_[rule_] <= kMostRecursion) return true;
  parser_.tokens_.Fatal(fmt::format("expression recursion limit exceeded: {}", kMostRecursion));
  return false;
}

Expr* Parser::Run() {
  Expr* root = ParseExpr();
  if (!tokens_.stopped() && !tokens_.At(K::kEnd)) tokens_.Expect(K::kEnd, 0);
  return root;
}

Expr* Parser::Report(uint32_t position, std::string message) {
  if (!tokens_.stopped()) issues_.push_back({position, std::move(message)});
  return ast_.New(ExprKind::kError, position);
}

Expr* Parser::Call(uint32_t position, std::string_view function, const Args& args, Expr* target) {
  if (Expr* expanded = ExpandMacro(ast_, options_, position, function, target, args, issues_)) {
    return expanded;
  }
  Expr* out = ast_.New(ExprKind::kCall, position);
  out->name = function;
  out->target = target;
  out->args = ast_.Copy(args);
  return out;
}

// expr: or ('?' or ':' expr)?
Expr* Parser::ParseExpr() {
  Depth depth(*this, kExprRule);
  Expr* condition = ParseLogical(operators::kOr);
  if (tokens_.stopped() || !tokens_.At(K::kQuestion)) return condition;
  uint32_t position = tokens_.Take().position;
  Expr* then = nullptr;
  {
    Enclosed colon(*this, Bit(K::kColon));
    then = ParseLogical(operators::kOr);
  }
  if (!tokens_.Expect(K::kColon, kExpressionStart)) return ErrorNode();
  Expr* otherwise = ParseExpr();
  return Call(position, operators::kConditional, {condition, then, otherwise});
}

// or: and ('||' and)*; and: relation ('&&' relation)*. Long chains become balanced trees.
Expr* Parser::ParseLogical(std::string_view function) {
  bool is_or = function == operators::kOr;
  auto next = [&] { return is_or ? ParseLogical(operators::kAnd) : ParseRelation(); };
  Args terms{next()};
  std::vector<uint32_t> positions;
  while (!tokens_.stopped() && tokens_.At(is_or ? K::kOr : K::kAnd)) {
    positions.push_back(tokens_.Take().position);
    terms.push_back(next());
  }
  return terms.size() == 1 ? terms[0] : Balance(function, terms, positions, 0, positions.size() - 1);
}

Expr* Parser::Balance(std::string_view function, const Args& terms, const std::vector<uint32_t>& positions,
                      size_t low, size_t high) {
  size_t middle = (low + high + 1) / 2;
  Expr* left = middle == low ? terms[middle] : Balance(function, terms, positions, low, middle - 1);
  Expr* right = middle == high ? terms[middle + 1] : Balance(function, terms, positions, middle + 1, high);
  return Call(positions[middle], function, {left, right});
}

Expr* Parser::ParseRelation() {
  Depth depth(*this, kRelationRule);
  Expr* left = ParseSum();
  while (!tokens_.stopped()) {
    std::string_view function = RelationOperator(tokens_.Peek().kind);
    if (function.empty()) break;
    uint32_t position = tokens_.Take().position;
    if (!depth.Add()) break;
    left = Call(position, function, {left, ParseSum()});
  }
  return left;
}

Expr* Parser::ParseSum() {
  Depth depth(*this, kCalcRule);
  Expr* left = ParseProduct(depth);
  while (!tokens_.stopped()) {
    std::string_view function = CalcOperator(tokens_.Peek().kind, false);
    if (function.empty()) break;
    uint32_t position = tokens_.Take().position;
    if (!depth.Add()) break;
    Depth right(*this, kCalcRule);
    left = Call(position, function, {left, ParseProduct(right)});
  }
  return left;
}

Expr* Parser::ParseProduct(Depth& depth) {
  Expr* left = ParseUnary();
  while (!tokens_.stopped()) {
    std::string_view function = CalcOperator(tokens_.Peek().kind, true);
    if (function.empty()) break;
    uint32_t position = tokens_.Take().position;
    if (!depth.Add()) break;
    left = Call(position, function, {left, ParseUnary()});
  }
  return left;
}

// unary: member | '!'+ member | '-'+ member
Expr* Parser::ParseUnary() {
  if (tokens_.stopped() || !tokens_.Check(kExpressionStart, Resume())) return ErrorNode();
  K kind = tokens_.Peek().kind;
  bool signed_number =
      kind == K::kMinus && (tokens_.Peek(1).kind == K::kInt || tokens_.Peek(1).kind == K::kDouble);
  if ((kind != K::kNot && kind != K::kMinus) || signed_number) return ParseMember();
  uint32_t position = tokens_.Peek().position;
  size_t count = 0;
  for (; tokens_.At(kind); ++count) tokens_.Take();
  constexpr TokenSet kMemberStart = kExpressionStart & ~(Bit(K::kNot) | Bit(K::kMinus));
  if (!tokens_.Check(kind == K::kNot ? kMemberStart | Bit(K::kMinus) : kMemberStart, Resume())) {
    return ErrorNode();
  }
  Expr* operand = ParseMember();
  if (count % 2 == 0) return operand;
  return Call(position, kind == K::kNot ? operators::kNot : operators::kNegate, {operand});
}

std::string QualifiedName(const Expr* expr) {
  std::vector<std::string_view> parts;
  for (; expr->kind == ExprKind::kSelect && !expr->test_only; expr = expr->target) {
    parts.push_back(expr->name);
  }
  if (expr->kind != ExprKind::kIdent) return {};
  std::string out(expr->name);
  for (size_t i = parts.size(); i-- > 0;) out.append(".").append(parts[i]);
  return out;
}

std::unique_ptr<Ast> Parse(std::string_view expression, const SyntaxOptions& options,
                           std::vector<Issue>& issues) {
  auto ast = std::make_unique<Ast>(expression);
  if (expression.size() > kMostCodePoints) {
    if (size_t size = CountCodePoints(expression); size > kMostCodePoints) {
      issues.push_back(
          {kNoPosition, fmt::format("expression code point size exceeds limit: size: {}, limit {}", size,
                                    kMostCodePoints)});
      return ast;
    }
  }
  Expr* root = Parser(*ast, options, issues).Run();
  if (issues.empty()) ast->root = root;
  return ast;
}

}  // namespace keelson::cel
