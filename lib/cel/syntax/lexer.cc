#include "lib/cel/syntax/lexer.h"

#include <string>

#include <fmt/format.h>

namespace keelson::cel {
namespace {

constexpr size_t kNoToken = 0;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsOctal(char c) { return c >= '0' && c <= '7'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsNewline(char c) { return c == '\n' || c == '\r'; }

class Lexer {
 public:
  Lexer(std::string_view text, std::vector<Issue>& issues) : text_(text), issues_(issues) {}

  std::vector<Token> Run() {
    tokens_.reserve(text_.size() / 4 + 8);
    for (;;) {
      SkipSpace();
      if (at_ >= text_.size()) break;
      failed_at_ = at_;
      TokenKind kind = TokenKind::kEnd;
      size_t end = Match(kind);
      if (end == kNoToken) {
        ReportUnknown();
        continue;
      }
      tokens_.push_back({kind, static_cast<uint32_t>(at_), text_.substr(at_, end - at_)});
      at_ = end;
    }
    tokens_.push_back({TokenKind::kEnd, static_cast<uint32_t>(text_.size()), "<EOF>"});
    return std::move(tokens_);
  }

 private:
  char Peek(size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  void SkipSpace() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
        ++at_;
      } else if (c == '/' && Peek(at_ + 1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  // A place that no token can go on from; the error shows the text up to it.
  size_t Fail(size_t at) {
    failed_at_ = std::max(failed_at_, at);
    return kNoToken;
  }

  void ReportUnknown() {
    size_t end = failed_at_ < text_.size() ? failed_at_ + 1 : text_.size();
    while (end < text_.size() && (static_cast<uint8_t>(text_[end]) & 0xC0) == 0x80) ++end;
    std::string shown;
    for (char c : text_.substr(at_, end - at_)) {
      shown += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : std::string(1, c);
    }
    issues_.push_back(
        {static_cast<uint32_t>(at_), fmt::format("Syntax error: token recognition error at: '{}'", shown)});
    at_ = end;
  }

  size_t Match(TokenKind& kind) {
    char c = text_[at_];
    if (size_t end = MatchLiteral(c, kind)) return end;
    if (IsLetter(c) || c == '_') return MatchWord(kind);
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(at_ + 1)))) return MatchNumber(kind);
    if (c == '`') return MatchEscapedIdentifier(kind);
    return MatchOperator(c, kind);
  }

  // Strings and bytes with their prefixes. A prefix whose quotes do not end is an identifier.
  size_t MatchLiteral(char c, TokenKind& kind) {
    size_t quote = at_;
    bool bytes = c == 'b' || c == 'B';
    if (bytes) ++quote;
    bool raw = Peek(quote) == 'r' || Peek(quote) == 'R';
    if (raw) ++quote;
    char q = Peek(quote);
    if (q != '"' && q != '\'') return kNoToken;
    kind = bytes ? TokenKind::kBytes : TokenKind::kString;
    size_t end = kNoToken;
    if (Peek(quote + 1) == q && Peek(quote + 2) == q) end = MatchTriple(quote + 3, q, raw);
    if (end == kNoToken) end = MatchQuoted(quote + 1, q, raw);
    return end;
  }

  size_t MatchTriple(size_t at, char quote, bool raw) {
    while (at < text_.size()) {
      if (text_[at] == quote && Peek(at + 1) == quote && Peek(at + 2) == quote) return at + 3;
      if (text_[at] == '\\' && !raw) {
        at = MatchEscape(at);
        if (at == kNoToken) return kNoToken;
      } else {
        ++at;
      }
    }
    return Fail(at);
  }

  size_t MatchQuoted(size_t at, char quote, bool raw) {
    while (at < text_.size() && !IsNewline(text_[at])) {
      if (text_[at] == quote) return at + 1;
      if (text_[at] == '\\' && !raw) {
        at = MatchEscape(at);
        if (at == kNoToken) return kNoToken;
      } else {
        ++at;
      }
    }
    return Fail(at);
  }

  size_t MatchEscape(size_t at) {
    char c = Peek(at + 1);
    size_t digits = 0, from = at + 2;
    bool octal = false;
    switch (c) {
      case 'a':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
      case 'v':
      case '"':
      case '\'':
      case '\\':
      case '?':
      case '`':
        return from;
      case 'x':
      case 'X':
        digits = 2;
        break;
      case 'u':
        digits = 4;
        break;
      case 'U':
        digits = 8;
        break;
      case '0':
      case '1':
      case '2':
      case '3':
        digits = 2;
        octal = true;
        break;
      default:
        return Fail(at + 1);
    }
    for (size_t i = 0; i < digits; ++i) {
      char digit = Peek(from + i);
      if (octal ? !IsOctal(digit) : !IsHex(digit)) return Fail(from + i);
    }
    return from + digits;
  }

  size_t MatchWord(TokenKind& kind) {
    size_t end = at_;
    while (IsLetter(Peek(end)) || IsDigit(Peek(end)) || Peek(end) == '_') ++end;
    std::string_view word = text_.substr(at_, end - at_);
    kind = word == "in"      ? TokenKind::kIn
           : word == "true"  ? TokenKind::kTrue
           : word == "false" ? TokenKind::kFalse
           : word == "null"  ? TokenKind::kNull
                             : TokenKind::kIdentifier;
    return end;
  }

  size_t MatchNumber(TokenKind& kind) {
    size_t end = at_;
    kind = TokenKind::kInt;
    if (Peek(end) == '0' && Peek(end + 1) == 'x' && IsHex(Peek(end + 2))) {
      end += 2;
      while (IsHex(Peek(end))) ++end;
    } else {
      while (IsDigit(Peek(end))) ++end;
      if (Peek(end) == '.' && IsDigit(Peek(end + 1))) {
        kind = TokenKind::kDouble;
        ++end;
        while (IsDigit(Peek(end))) ++end;
      }
      if (Peek(end) == 'e' || Peek(end) == 'E') {
        size_t digits = Peek(end + 1) == '+' || Peek(end + 1) == '-' ? end + 2 : end + 1;
        if (IsDigit(Peek(digits))) {
          kind = TokenKind::kDouble;
          end = digits;
          while (IsDigit(Peek(end))) ++end;
        }
      }
    }
    if (kind == TokenKind::kInt && (Peek(end) == 'u' || Peek(end) == 'U')) {
      kind = TokenKind::kUint;
      ++end;
    }
    return end;
  }

  size_t MatchEscapedIdentifier(TokenKind& kind) {
    size_t end = at_ + 1;
    kind = TokenKind::kEscapedIdentifier;
    for (; end < text_.size(); ++end) {
      char c = text_[end];
      if (c == '`' && end > at_ + 1) return end + 1;
      if (!IsLetter(c) && !IsDigit(c) && c != '_' && c != '.' && c != '-' && c != '/' && c != ' ') break;
    }
    return Fail(end);
  }

  size_t MatchOperator(char c, TokenKind& kind) {
    char next = Peek(at_ + 1);
    switch (c) {
      case '=':
        kind = TokenKind::kEquals;
        return next == '=' ? at_ + 2 : Fail(at_ + 1);
      case '&':
        kind = TokenKind::kAnd;
        return next == '&' ? at_ + 2 : Fail(at_ + 1);
      case '|':
        kind = TokenKind::kOr;
        return next == '|' ? at_ + 2 : Fail(at_ + 1);
      case '!':
        kind = next == '=' ? TokenKind::kNotEquals : TokenKind::kNot;
        return at_ + (next == '=' ? 2 : 1);
      case '<':
        kind = next == '=' ? TokenKind::kLessEquals : TokenKind::kLess;
        return at_ + (next == '=' ? 2 : 1);
      case '>':
        kind = next == '=' ? TokenKind::kGreaterEquals : TokenKind::kGreater;
        return at_ + (next == '=' ? 2 : 1);
      default:
        break;
    }
    constexpr std::string_view kCharacters = "[]{}().,-?:+*/%";
    constexpr TokenKind kKinds[] = {TokenKind::kLeftBracket, TokenKind::kRightBracket, TokenKind::kLeftBrace,
                                    TokenKind::kRightBrace,  TokenKind::kLeftParen,    TokenKind::kRightParen,
                                    TokenKind::kDot,         TokenKind::kComma,        TokenKind::kMinus,
                                    TokenKind::kQuestion,    TokenKind::kColon,        TokenKind::kPlus,
                                    TokenKind::kStar,        TokenKind::kSlash,        TokenKind::kPercent};
    size_t found = c == '\0' ? std::string_view::npos : kCharacters.find(c);
    if (found == std::string_view::npos) return Fail(at_);
    kind = kKinds[found];
    return at_ + 1;
  }

  std::string_view text_;
  std::vector<Issue>& issues_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  size_t failed_at_ = 0;
};

}  // namespace

std::string_view TokenName(TokenKind kind) {
  constexpr std::string_view kNames[] = {
      "'=='",      "'!='",    "'in'",     "'<'",    "'<='",   "'>='",       "'>'",
      "'&&'",      "'||'",    "'['",      "']'",    "'{'",    "'}'",        "'('",
      "')'",       "'.'",     "','",      "'-'",    "'!'",    "'?'",        "':'",
      "'+'",       "'*'",     "'/'",      "'%'",    "'true'", "'false'",    "'null'",
      "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES",  "IDENTIFIER", "ESC_IDENTIFIER",
      "<EOF>"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<Token> Tokenize(std::string_view text, std::vector<Issue>& issues) {
  return Lexer(text, issues).Run();
}

}  // namespace keelson::cel
