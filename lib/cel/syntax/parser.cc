#include "lib/cel/syntax/parser.h"

#include <optional>

#include <fmt/format.h>

#include "lib/cel/syntax/escaping.h"
#include "lib/cel/syntax/lexer.h"
#include "lib/cel/syntax/literal.h"
#include "lib/cel/syntax/macros.h"
#include "lib/cel/syntax/recovery.h"

namespace keelson::cel {
namespace {

using Args = std::vector<Expr*>;
using K = TokenKind;

// The grammar's rules, each with its own limit of recursion, as upstream counts. A chain of operators of one rule counts
// as nested.
enum Rule { kExprRule, kRelationRule, kCalcRule, kMemberRule, kRules };

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

class Parser {
 public:
  Parser(Ast& ast, const SyntaxOptions& options, std::vector<Issue>& issues)
      : ast_(ast), options_(options), issues_(issues), tokens_(Tokenize(ast.source(), issues), issues) {}

  Expr* Run() {
    Expr* root = ParseExpr();
    if (!tokens_.stopped() && !tokens_.At(K::kEnd)) tokens_.Expect(K::kEnd, 0);
    return root;
  }

 private:
  // Counts one level of a rule while it lives, and further ones of a chain.
  class Depth {
   public:
    Depth(Parser& parser, Rule rule) : parser_(parser), rule_(rule) { Add(); }
    ~Depth() { parser_.depth_[rule_] -= count_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    bool Add() {
      ++count_;
      if (++parser_.depth_[rule_] <= kMostRecursion) return true;
      parser_.tokens_.Fatal(fmt::format("expression recursion limit exceeded: {}", kMostRecursion));
      return false;
    }

   private:
    Parser& parser_;
    Rule rule_;
    int count_ = 0;
  };

  // Tokens that end what encloses the current rule: while it lives, errors are skipped no further.
  class Enclosed {
   public:
    Enclosed(Parser& parser, TokenSet follow) : parser_(parser), before_(parser.follow_) {
      parser.follow_ |= follow;
    }
    ~Enclosed() { parser_.follow_ = before_; }
    Enclosed(const Enclosed&) = delete;
    Enclosed& operator=(const Enclosed&) = delete;

   private:
    Parser& parser_;
    TokenSet before_;
  };

  TokenSet Resume() const { return follow_ | kOperators | Bit(K::kEnd); }
  TokenSet ResumeMember() const { return Resume() | Bit(K::kDot) | Bit(K::kLeftBracket); }

  Expr* ErrorNode() { return ast_.New(ExprKind::kError, tokens_.Peek().position); }

  Expr* Report(uint32_t position, std::string message) {
    if (!tokens_.stopped()) issues_.push_back({position, std::move(message)});
    return ast_.New(ExprKind::kError, position);
  }

  Expr* Call(uint32_t position, std::string_view function, const Args& args, Expr* target = nullptr) {
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
  Expr* ParseExpr() {
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
  Expr* ParseLogical(std::string_view function) {
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

  Expr* Balance(std::string_view function, const Args& terms, const std::vector<uint32_t>& positions,
                size_t low, size_t high) {
    size_t middle = (low + high + 1) / 2;
    Expr* left = middle == low ? terms[middle] : Balance(function, terms, positions, low, middle - 1);
    Expr* right = middle == high ? terms[middle + 1] : Balance(function, terms, positions, middle + 1, high);
    return Call(positions[middle], function, {left, right});
  }

  Expr* ParseRelation() {
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

  Expr* ParseSum() {
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

  Expr* ParseProduct(Depth& depth) {
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
  Expr* ParseUnary() {
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

  // member: primary ('.' '?'? name | '.' name '(' args ')' | '[' '?'? expr ']')*
  Expr* ParseMember() {
    Depth depth(*this, kMemberRule);
    Expr* target = ParsePrimary();
    while (!tokens_.stopped()) {
      if (tokens_.At(K::kDot)) {
        target = ParseSelection(target);
      } else if (tokens_.At(K::kLeftBracket)) {
        target = ParseIndex(target);
      } else {
        break;
      }
      if (!depth.Add()) break;
    }
    return target;
  }

  Expr* ParseSelection(Expr* target) {
    Token dot = tokens_.Peek();
    K next = tokens_.Peek(1).kind;
    if (next != K::kIdentifier && next != K::kEscapedIdentifier && next != K::kQuestion) {
      Token offending = tokens_.Peek(1);
      tokens_.Drop();
      tokens_.ReportNoAlternative(dot, offending, ResumeMember());
      return ErrorNode();
    }
    tokens_.Take();
    bool optional = tokens_.At(K::kQuestion);
    if (optional) tokens_.Take();
    if (optional && !tokens_.Check(Bit(K::kIdentifier) | Bit(K::kEscapedIdentifier), ResumeMember())) {
      return ErrorNode();
    }
    Token field = tokens_.Take();
    std::string_view name = FieldName(field);
    if (!optional && field.kind == K::kIdentifier && tokens_.At(K::kLeftParen)) {
      uint32_t position = tokens_.Take().position;
      Args args;
      if (!ParseArguments(args)) return ErrorNode();
      return Call(position, name, args, target);
    }
    if (optional) {
      if (!options_.optional_syntax) return Report(dot.position, "unsupported syntax '.?'");
      Expr* key = ast_.New(ExprKind::kConstant, field.position);
      key->constant.kind = ConstantKind::kString;
      key->constant.text = name;
      return Call(dot.position, operators::kOptSelect, {target, key});
    }
    Expr* out = ast_.New(ExprKind::kSelect, dot.position);
    out->target = target;
    out->name = name;
    return out;
  }

  std::string_view FieldName(const Token& token) {
    if (token.kind != K::kEscapedIdentifier) return token.text;
    if (!options_.escaped_identifiers) Report(token.position, "unsupported syntax: '`'");
    return token.text.substr(1, token.text.size() - 2);
  }

  Expr* ParseIndex(Expr* target) {
    uint32_t position = tokens_.Take().position;
    bool optional = tokens_.At(K::kQuestion);
    if (optional) tokens_.Take();
    Expr* index = nullptr;
    {
      Enclosed bracket(*this, Bit(K::kRightBracket));
      index = ParseExpr();
    }
    if (!tokens_.Expect(K::kRightBracket, ResumeMember())) return ErrorNode();
    if (optional && !options_.optional_syntax) return Report(position, "unsupported syntax '[?'");
    return Call(position, optional ? operators::kOptIndex : operators::kIndex, {target, index});
  }

  // Behind '(': arguments and ')'.
  bool ParseArguments(Args& args) {
    if (tokens_.At(K::kRightParen)) {
      tokens_.Take();
      return true;
    }
    {
      Enclosed paren(*this, Bit(K::kRightParen) | Bit(K::kComma));
      if (!tokens_.Check(kExpressionStart | Bit(K::kRightParen), Resume())) return false;
      for (;;) {
        if (tokens_.At(K::kRightParen) && args.empty()) break;
        args.push_back(ParseExpr());
        if (tokens_.stopped() || !tokens_.At(K::kComma)) break;
        tokens_.Take();
      }
    }
    return tokens_.Expect(K::kRightParen, ResumeMember());
  }

  Expr* ParsePrimary() {
    const Token& token = tokens_.Peek();
    switch (token.kind) {
      case K::kDot:
      case K::kIdentifier:
        return ParseName();
      case K::kLeftParen:
        return ParseNested();
      case K::kLeftBracket:
        return ParseList();
      case K::kLeftBrace:
        return ParseMap();
      default:
        return ParseLiteral();
    }
  }

  Expr* ParseNested() {
    tokens_.Take();
    Expr* inner = nullptr;
    {
      Enclosed paren(*this, Bit(K::kRightParen));
      inner = ParseExpr();
    }
    if (!tokens_.Expect(K::kRightParen, ResumeMember())) return ErrorNode();
    return inner;
  }

  // True when a message literal begins here: name ('.' name)* '{'.
  bool AtStruct(size_t ahead) const {
    while (tokens_.Peek(ahead).kind == K::kIdentifier && tokens_.Peek(ahead + 1).kind == K::kDot) ahead += 2;
    return tokens_.Peek(ahead).kind == K::kIdentifier && tokens_.Peek(ahead + 1).kind == K::kLeftBrace;
  }

  Expr* ParseName() {
    Token first = tokens_.Peek();
    bool dot = first.kind == K::kDot;
    if (dot && tokens_.Peek(1).kind != K::kIdentifier) {
      Token offending = tokens_.Peek(1);
      tokens_.Drop();
      tokens_.ReportNoAlternative(first, offending, ResumeMember());
      return ErrorNode();
    }
    if (AtStruct(dot ? 1 : 0)) return ParseStruct(dot);
    if (dot) tokens_.Take();
    Token name = tokens_.Take();
    std::string_view text = dot ? ast_.Keep("." + std::string(name.text)) : name.text;
    bool reserved = IsReservedWord(name.text);
    if (reserved) Report(first.position, fmt::format("reserved identifier: {}", name.text));
    if (tokens_.At(K::kLeftParen)) {
      uint32_t position = tokens_.Take().position;
      Args args;
      if (!ParseArguments(args) || reserved) return ErrorNode();
      return Call(position, text, args);
    }
    if (reserved) return ErrorNode();
    Expr* out = ast_.New(ExprKind::kIdent, name.position);
    out->name = text;
    return out;
  }

  Expr* ParseStruct(bool dot) {
    std::string type;
    if (dot) type = tokens_.Take().text;
    while (!tokens_.At(K::kLeftBrace)) type += tokens_.Take().text;
    Expr* out = ast_.New(ExprKind::kStruct, tokens_.Take().position);
    out->name = ast_.Keep(std::move(type));
    Args values;
    std::vector<std::string_view> names;
    std::vector<uint32_t> positions;
    std::vector<bool> optional;
    Enclosed brace(*this, Bit(K::kRightBrace) | Bit(K::kComma));
    constexpr TokenSet kNames = Bit(K::kQuestion) | Bit(K::kIdentifier) | Bit(K::kEscapedIdentifier);
    if (!tokens_.Check(kNames | Bit(K::kRightBrace) | Bit(K::kComma), Resume())) return ErrorNode();
    while (Has(kNames, tokens_.Peek().kind)) {
      bool is_optional = TakeQuestion();
      if (!tokens_.Check(Bit(K::kIdentifier) | Bit(K::kEscapedIdentifier), Resume())) return ErrorNode();
      names.push_back(FieldName(tokens_.Take()));
      positions.push_back(tokens_.Peek().position);
      if (!tokens_.Expect(K::kColon, kExpressionStart)) return ErrorNode();
      values.push_back(ParseExpr());
      optional.push_back(is_optional);
      if (tokens_.stopped() || !tokens_.At(K::kComma)) break;
      tokens_.Take();
    }
    if (tokens_.At(K::kComma) && values.empty()) tokens_.Take();
    if (!tokens_.Expect(K::kRightBrace, ResumeMember())) return ErrorNode();
    out->args = ast_.Copy(values);
    out->names = ast_.Copy(names);
    out->positions = ast_.Copy(positions);
    out->optional = CopyFlags(optional);
    return out;
  }

  bool TakeQuestion() {
    if (!tokens_.At(K::kQuestion)) return false;
    uint32_t position = tokens_.Take().position;
    if (!options_.optional_syntax) Report(position, "unsupported syntax '?'");
    return true;
  }

  std::span<bool> CopyFlags(const std::vector<bool>& flags) {
    bool any = false;
    for (bool flag : flags) any |= flag;
    if (!any) return {};
    auto* data = static_cast<bool*>(static_cast<void*>(ast_.Copy(std::vector<char>(flags.size(), 0)).data()));
    for (size_t i = 0; i < flags.size(); ++i) data[i] = flags[i];
    return {data, flags.size()};
  }

  Expr* ParseList() {
    Expr* out = ast_.New(ExprKind::kList, tokens_.Take().position);
    Args items;
    std::vector<bool> optional;
    Enclosed bracket(*this, Bit(K::kRightBracket) | Bit(K::kComma));
    constexpr TokenSet kItems = kExpressionStart | Bit(K::kQuestion);
    if (!tokens_.Check(kItems | Bit(K::kRightBracket) | Bit(K::kComma), Resume())) return ErrorNode();
    while (Has(kItems, tokens_.Peek().kind)) {
      optional.push_back(TakeQuestion());
      items.push_back(ParseExpr());
      if (tokens_.stopped() || !tokens_.At(K::kComma)) break;
      tokens_.Take();
    }
    if (tokens_.At(K::kComma) && items.empty()) tokens_.Take();
    if (!tokens_.Expect(K::kRightBracket, ResumeMember())) return ErrorNode();
    out->args = ast_.Copy(items);
    out->optional = CopyFlags(optional);
    return out;
  }

  Expr* ParseMap() {
    Expr* out = ast_.New(ExprKind::kMap, tokens_.Take().position);
    Args entries;
    std::vector<bool> optional;
    std::vector<uint32_t> positions;
    Enclosed brace(*this, Bit(K::kRightBrace) | Bit(K::kComma) | Bit(K::kColon));
    constexpr TokenSet kKeys = kExpressionStart | Bit(K::kQuestion);
    if (!tokens_.Check(kKeys | Bit(K::kRightBrace) | Bit(K::kComma), Resume())) return ErrorNode();
    while (Has(kKeys, tokens_.Peek().kind)) {
      optional.push_back(TakeQuestion());
      entries.push_back(ParseExpr());
      positions.push_back(tokens_.Peek().position);
      if (!tokens_.Expect(K::kColon, kExpressionStart)) return ErrorNode();
      entries.push_back(ParseExpr());
      if (tokens_.stopped() || !tokens_.At(K::kComma)) break;
      tokens_.Take();
    }
    if (tokens_.At(K::kComma) && entries.empty()) tokens_.Take();
    if (!tokens_.Expect(K::kRightBrace, ResumeMember())) return ErrorNode();
    out->args = ast_.Copy(entries);
    out->positions = ast_.Copy(positions);
    out->optional = CopyFlags(optional);
    return out;
  }

  Expr* ParseLiteral() {
    uint32_t position = tokens_.Peek().position;
    bool negative = tokens_.At(K::kMinus);
    if (negative) tokens_.Take();
    Token token = tokens_.Take();
    Expr* out = ast_.New(ExprKind::kConstant, position);
    Constant& constant = out->constant;
    switch (token.kind) {
      case K::kTrue:
      case K::kFalse:
        constant.kind = ConstantKind::kBool;
        constant.b = token.kind == K::kTrue;
        return out;
      case K::kNull:
        return out;
      case K::kInt: {
        auto value = ParseIntLiteral(token.text, negative);
        if (!value) return Report(position, "invalid int literal");
        constant.kind = ConstantKind::kInt;
        constant.i = *value;
        return out;
      }
      case K::kUint: {
        auto value = ParseUintLiteral(token.text.substr(0, token.text.size() - 1));
        if (!value) return Report(position, "invalid uint literal");
        constant.kind = ConstantKind::kUint;
        constant.u = *value;
        return out;
      }
      case K::kDouble: {
        auto value = ParseDoubleLiteral(token.text);
        if (!value) return Report(position, "invalid double literal");
        constant.kind = ConstantKind::kDouble;
        constant.d = negative ? -*value : *value;
        return out;
      }
      default:
        break;
    }
    bool bytes = token.kind == K::kBytes;
    auto text = UnquoteLiteral(bytes ? token.text.substr(1) : token.text, bytes);
    if (!text) return Report(position, text.error().message());
    constant.kind = bytes ? ConstantKind::kBytes : ConstantKind::kString;
    constant.text = ast_.Keep(std::move(*text));
    return out;
  }

  Ast& ast_;
  const SyntaxOptions& options_;
  std::vector<Issue>& issues_;
  TokenStream tokens_;
  TokenSet follow_ = 0;
  int depth_[kRules] = {};
};

}  // namespace

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
