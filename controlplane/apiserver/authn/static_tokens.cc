#include "controlplane/apiserver/authn/static_tokens.h"

#include <fmt/format.h>

#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/crypto/digest.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kBlank = " \t\r";

// Parses a CSV line with optional double quotes.
std::vector<std::string> SplitCsv(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  for (std::string& field : out) field = std::string(Trim(field, kBlank));
  return out;
}

class Verifier : public TokenVerifier {
 public:
  Verifier(StaticTokens tokens, std::vector<std::string> audiences)
      : tokens_(std::move(tokens)), audiences_(std::move(audiences)) {}

  Result<std::optional<TokenAnswer>> Authenticate(std::string_view token,
                                                  const std::vector<std::string>& audiences) override {
    auto it = tokens_.find(crypto::Sha256(token));
    if (it == tokens_.end()) return std::optional<TokenAnswer>();
    std::vector<std::string> both = Intersect(audiences, audiences_);
    if (both.empty()) return std::optional<TokenAnswer>();
    return std::optional<TokenAnswer>(TokenAnswer{it->second, std::move(both)});
  }

 private:
  const StaticTokens tokens_;
  const std::vector<std::string> audiences_;
};

}  // namespace

Result<StaticTokens> ParseTokenFile(std::string_view text) {
  StaticTokens out;
  for (int number = 1; !text.empty(); ++number) {
    auto end = text.find('\n');
    std::string_view line = Trim(text.substr(0, end), kBlank);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string> fields = SplitCsv(line);
    if (fields.size() < 3) {
      return Error(Code::kInvalid,
                   fmt::format("token file: line {} must have at least 3 columns (token, user name, user "
                               "uid), found {}",
                               number, fields.size()));
    }
    if (fields[0].empty()) {
      log::Warn("Empty token in the token file", {{"line", std::to_string(number)}});
      continue;
    }
    User user{fields[1], fields[2], {}, {}};
    if (fields.size() > 3) {
      for (std::string& group : SplitCsv(fields[3])) {
        if (!group.empty()) user.groups.push_back(std::move(group));
      }
    }
    out[crypto::Sha256(fields[0])] = std::move(user);
  }
  return out;
}

std::shared_ptr<TokenVerifier> NewStaticTokenVerifier(StaticTokens tokens,
                                                      std::vector<std::string> api_audiences) {
  return std::make_shared<Verifier>(std::move(tokens), std::move(api_audiences));
}

}  // namespace keelson::apiserver
