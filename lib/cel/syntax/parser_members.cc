#include <fmt/format.h>

#include "lib/cel/syntax/escaping.h"
#include "lib/cel/syntax/parser_rules.h"

namespace keelson::cel {

// member: primary ('.' '?'? name | '.' name '(' args ')' | '[' '?'? expr ']')*
Expr* Parser::ParseMember() {
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

Expr* Parser::ParseSelection(Expr* target) {
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

std::string_view Parser::FieldName(const Token& token) {
  if (token.kind != K::kEscapedIdentifier) return token.text;
  if (!options_.escaped_identifiers) Report(token.position, "unsupported syntax: '`'");
  return token.text.substr(1, token.text.size() - 2);
}

Expr* Parser::ParseIndex(Expr* target) {
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
bool Parser::ParseArguments(Args& args) {
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

Expr* Parser::ParsePrimary() {
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

Expr* Parser::ParseNested() {
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
bool Parser::AtStruct(size_t ahead) const {
  while (tokens_.Peek(ahead).kind == K::kIdentifier && tokens_.Peek(ahead + 1).kind == K::kDot) ahead += 2;
  return tokens_.Peek(ahead).kind == K::kIdentifier && tokens_.Peek(ahead + 1).kind == K::kLeftBrace;
}

Expr* Parser::ParseName() {
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

}  // namespace keelson::cel
