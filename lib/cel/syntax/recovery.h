// The parser's error handling: reports in the words of ANTLR's default strategy, and goes on behind a problem as that
// does, so that one problem gives the same messages as upstream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cel/syntax/lexer.h"
#include "lib/cel/syntax/source.h"

namespace keelson::cel {

// A set of token kinds, as bits.
using TokenSet = uint64_t;

constexpr TokenSet Bit(TokenKind kind) { return TokenSet{1} << static_cast<int>(kind); }
constexpr bool Has(TokenSet set, TokenKind kind) { return set & Bit(kind); }

// What begins an expression.
inline constexpr TokenSet kExpressionStart =
    Bit(TokenKind::kLeftBracket) | Bit(TokenKind::kLeftBrace) | Bit(TokenKind::kLeftParen) |
    Bit(TokenKind::kDot) | Bit(TokenKind::kMinus) | Bit(TokenKind::kNot) | Bit(TokenKind::kTrue) |
    Bit(TokenKind::kFalse) | Bit(TokenKind::kNull) | Bit(TokenKind::kDouble) | Bit(TokenKind::kInt) |
    Bit(TokenKind::kUint) | Bit(TokenKind::kString) | Bit(TokenKind::kBytes) | Bit(TokenKind::kIdentifier);
inline constexpr TokenSet kOperators =
    Bit(TokenKind::kEquals) | Bit(TokenKind::kNotEquals) | Bit(TokenKind::kIn) | Bit(TokenKind::kLess) |
    Bit(TokenKind::kLessEquals) | Bit(TokenKind::kGreaterEquals) | Bit(TokenKind::kGreater) |
    Bit(TokenKind::kAnd) | Bit(TokenKind::kOr) | Bit(TokenKind::kMinus) | Bit(TokenKind::kQuestion) |
    Bit(TokenKind::kPlus) | Bit(TokenKind::kStar) | Bit(TokenKind::kSlash) | Bit(TokenKind::kPercent);

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::vector<Issue>& issues)
      : tokens_(std::move(tokens)), issues_(issues) {}

  const Token& Peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool At(TokenKind kind) const { return Peek().kind == kind; }
  size_t index() const { return at_; }

  // Takes the token that is known to be right. The last one, <EOF>, stays.
  const Token& Take() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    recovering_ = false;
    return token;
  }

  // Leaves a token out that belongs to a problem.
  void Drop() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }

  // Takes a token of the kind, or the one behind it; true also where a missing one can be thought. `follow`: what may
  // stand behind it.
  bool Expect(TokenKind kind, TokenSet follow);

  // True when the next token, perhaps behind one that is too much, is of the set. Otherwise skips to `resume`.
  bool Check(TokenSet expected, TokenSet resume);

  void ReportNoAlternative(const Token& from, const Token& offending, TokenSet resume);
  void Report(const Token& token, std::string message);
  void Fatal(std::string message);  // nothing is parsed or reported from here on

  bool stopped() const { return stopped_; }

 private:
  bool BeginRecovery();
  void SkipTo(TokenSet resume);

  std::vector<Token> tokens_;
  std::vector<Issue>& issues_;
  size_t at_ = 0;
  bool recovering_ = false, stopped_ = false;
  int recoveries_ = 0;
  size_t last_error_ = SIZE_MAX;
};

}  // namespace keelson::cel
