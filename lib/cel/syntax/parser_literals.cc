#include "lib/cel/syntax/literal.h"
#include "lib/cel/syntax/parser_rules.h"

namespace keelson::cel {

Expr* Parser::ParseStruct(bool dot) {
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

bool Parser::TakeQuestion() {
  if (!tokens_.At(K::kQuestion)) return false;
  uint32_t position = tokens_.Take().position;
  if (!options_.optional_syntax) Report(position, "unsupported syntax '?'");
  return true;
}

std::span<bool> Parser::CopyFlags(const std::vector<bool>& flags) {
  bool any = false;
  for (bool flag : flags) any |= flag;
  if (!any) return {};
  auto* data = static_cast<bool*>(static_cast<void*>(ast_.Copy(std::vector<char>(flags.size(), 0)).data()));
  for (size_t i = 0; i < flags.size(); ++i) data[i] = flags[i];
  return {data, flags.size()};
}

Expr* Parser::ParseList() {
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

Expr* Parser::ParseMap() {
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

Expr* Parser::ParseLiteral() {
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

}  // namespace keelson::cel
