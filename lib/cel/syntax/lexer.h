// Tokens of CEL (cel-spec, langdef.md, "Syntax").
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/cel/syntax/source.h"

namespace keelson::cel {

// In the order in which upstream's messages list expected tokens.
enum class TokenKind : uint8_t {
  kEquals,
  kNotEquals,
  kIn,
  kLess,
  kLessEquals,
  kGreaterEquals,
  kGreater,
  kAnd,
  kOr,
  kLeftBracket,
  kRightBracket,
  kLeftBrace,
  kRightBrace,
  kLeftParen,
  kRightParen,
  kDot,
  kComma,
  kMinus,
  kNot,
  kQuestion,
  kColon,
  kPlus,
  kStar,
  kSlash,
  kPercent,
  kTrue,
  kFalse,
  kNull,
  kDouble,
  kInt,
  kUint,
  kString,
  kBytes,
  kIdentifier,
  kEscapedIdentifier,  // `a-b`
  kEnd,
};

struct Token {
  TokenKind kind;
  uint32_t position;
  std::string_view text;
};

// "'+'", "IDENTIFIER", "<EOF>": as messages name it.
std::string_view TokenName(TokenKind kind);

// The tokens of `text`, the last of them kEnd; views of it. Characters that begin no token are reported in upstream's
// words and left out.
std::vector<Token> Tokenize(std::string_view text, std::vector<Issue>& issues);

}  // namespace keelson::cel
