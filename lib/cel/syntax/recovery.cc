#include "lib/cel/syntax/recovery.h"

#include <fmt/format.h>

namespace keelson::cel {
namespace {

constexpr int kMostRecoveries = 30;
constexpr int kMostSkipped = 256;

std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : std::string(1, c);
  return out + "'";
}

std::string Names(TokenSet set) {
  std::string out;
  int count = 0;
  for (int i = 0; i <= static_cast<int>(TokenKind::kEnd); ++i) {
    if (!Has(set, static_cast<TokenKind>(i))) continue;
    if (count++ > 0) out += ", ";
    out += TokenName(static_cast<TokenKind>(i));
  }
  return count == 1 ? out : "{" + out + "}";
}

}  // namespace

void TokenStream::Report(const Token& token, std::string message) {
  if (stopped_ || recovering_) return;
  recovering_ = true;
  issues_.push_back({token.position, "Syntax error: " + std::move(message)});
}

void TokenStream::Fatal(std::string message) {
  if (stopped_) return;
  stopped_ = true;
  at_ = tokens_.size() - 1;
  issues_.push_back({kNoPosition, std::move(message)});
}

bool TokenStream::BeginRecovery() {
  if (recoveries_++ < kMostRecoveries) return true;
  if (!stopped_) {
    issues_.push_back({Peek().position, fmt::format("Syntax error: error recovery attempt limit exceeded: {}",
                                                    kMostRecoveries)});
  }
  stopped_ = true;
  at_ = tokens_.size() - 1;
  return false;
}

void TokenStream::SkipTo(TokenSet resume) {
  // A second problem at one place: at least one token goes, so that the parser ends.
  if (last_error_ == at_ && !At(TokenKind::kEnd)) ++at_;
  last_error_ = at_;
  for (int skipped = 0; !At(TokenKind::kEnd) && !Has(resume, Peek().kind); ++skipped) {
    if (skipped >= kMostSkipped) {
      Fatal(fmt::format("error recovery token lookahead limit exceeded: {}", kMostSkipped));
      return;
    }
    ++at_;
  }
}

bool TokenStream::Expect(TokenKind kind, TokenSet follow) {
  if (At(kind)) {
    Take();
    return true;
  }
  if (stopped_ || !BeginRecovery()) return false;
  if (Peek(1).kind == kind && !At(TokenKind::kEnd)) {
    Report(Peek(), fmt::format("extraneous input {} expecting {}", Quoted(Peek().text), TokenName(kind)));
    ++at_;
    Take();
    return true;
  }
  if (Has(follow, Peek().kind)) {
    Report(Peek(), fmt::format("missing {} at {}", TokenName(kind), Quoted(Peek().text)));
    return true;
  }
  Report(Peek(), fmt::format("mismatched input {} expecting {}", Quoted(Peek().text), TokenName(kind)));
  SkipTo(follow);
  return false;
}

bool TokenStream::Check(TokenSet expected, TokenSet resume) {
  if (Has(expected, Peek().kind)) return true;
  if (stopped_ || !BeginRecovery()) return false;
  if (Has(expected, Peek(1).kind) && !At(TokenKind::kEnd)) {
    Report(Peek(), fmt::format("extraneous input {} expecting {}", Quoted(Peek().text), Names(expected)));
    ++at_;
    recovering_ = false;
    return true;
  }
  Report(Peek(), fmt::format("mismatched input {} expecting {}", Quoted(Peek().text), Names(expected)));
  SkipTo(resume);
  return false;
}

void TokenStream::ReportNoAlternative(const Token& from, const Token& offending, TokenSet resume) {
  if (stopped_ || !BeginRecovery()) return;
  bool end = offending.kind == TokenKind::kEnd;
  std::string text(from.text.data(), end ? from.text.size()
                                         : static_cast<size_t>(offending.text.data() + offending.text.size() -
                                                               from.text.data()));
  if (from.kind == TokenKind::kDot &&
      (offending.kind == TokenKind::kTrue || offending.kind == TokenKind::kFalse ||
       offending.kind == TokenKind::kNull)) {
    Report(offending, fmt::format("mismatched input '{}' expecting IDENTIFIER", offending.text));
  } else {
    Report(offending, fmt::format("no viable alternative at input {}", Quoted(text)));
  }
  SkipTo(resume);
}

}  // namespace keelson::cel
