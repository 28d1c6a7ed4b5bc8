#include "controlplane/apiserver/handlers/openapi.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/response.h"
#include "lib/api/openapi/openapi.h"
#include "lib/base/text.h"
#include "lib/crypto/digest.h"
#include "lib/http/gzip.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kV2 = "/openapi/v2", kV3 = "/openapi/v3";
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kV2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
constexpr std::string_view kV3Protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
// The original media type, with an invalid character; old clients still request it.
constexpr std::string_view kOldV2Protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
constexpr std::string_view kOldV3Protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";

constexpr std::chrono::minutes kIdle{5};

enum class Wanted { kJson, kProtobuf, kNeither };

Wanted WantedForm(const Context& context, std::string_view protobuf, std::string_view old_protobuf) {
  std::string_view header = context.request->headers.Get("Accept");
  if (header.empty()) return Wanted::kJson;
  for (const MediaType& clause : ParseAccept(header)) {
    if (clause.quality <= 0) continue;
    if (Covers(clause, kJson)) return Wanted::kJson;
    if (clause.type == protobuf || clause.type == old_protobuf) return Wanted::kProtobuf;
  }
  return Wanted::kNeither;
}

std::string Quoted(const std::string& hash) { return "\"" + hash + "\""; }

// If-None-Match: "a", W/"b" or *
bool Matches(std::string_view header, const std::string& etag) {
  while (!header.empty()) {
    size_t comma = header.find(',');
    std::string_view one = header.substr(0, comma);
    header = comma == std::string_view::npos ? std::string_view() : header.substr(comma + 1);
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
    if (one.substr(0, 2) == "W/") one.remove_prefix(2);
    if (one == "*" || one == etag) return true;
  }
  return false;
}

std::string InAYear(WallTime now) {
  std::time_t seconds = std::chrono::system_clock::to_time_t(now + std::chrono::hours(24 * 365));
  std::tm time{};
  gmtime_r(&seconds, &time);
  char text[64];
  size_t size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &time);
  return std::string(text, size);
}

void NotAcceptable(Context& context) {
  context.status = 406;
  context.writer->Reply(406, {{"Vary", "Accept"}}, "");
}

}  // namespace

OpenApiHandler::DocumentPtr OpenApiHandler::Find(const std::string& key, std::string_view content_type,
                                                 const std::string& hash,
                                                 const std::function<std::string()>& make) {
  {
    MutexLock lock(mutex_);
    if (auto it = documents_.find(key); it != documents_.end()) {
      it->second.used = clock_.SteadyNow();
      return it->second.document;
    }
  }
  std::string text = make();
  auto made = std::make_shared<Document>();
  made->content_type = content_type;
  made->hash = hash.empty() ? crypto::Sha256Hex(text) : hash;
  made->gzip = http::Gzip({std::make_shared<const std::string>(std::move(text))});
  MutexLock lock(mutex_);
  return documents_.insert_or_assign(key, Kept{std::move(made), clock_.SteadyNow()}).first->second.document;
}

void OpenApiHandler::DropIdle() {
  MutexLock lock(mutex_);
  SteadyTime now = clock_.SteadyNow();
  for (auto it = documents_.begin(); it != documents_.end();) {
    it = now - it->second.used >= kIdle ? documents_.erase(it) : std::next(it);
  }
}

size_t OpenApiHandler::kept() const {
  MutexLock lock(mutex_);
  return documents_.size();
}

void OpenApiHandler::Reply(Context& context, const Document& document, http::Headers headers) const {
  headers.Set("ETag", Quoted(document.hash));
  if (!headers.Has("Cache-Control")) headers.Add("Cache-Control", "no-cache, private");
  if (Matches(context.request->headers.Get("If-None-Match"), Quoted(document.hash))) {
    context.status = 304;
    context.writer->Reply(304, std::move(headers), "");
    return;
  }
  context.status = 200;
  headers.Add("Content-Type", document.content_type);
  if (context.output.gzip) {
    headers.Add("Content-Encoding", "gzip");
    context.writer->Reply(200, std::move(headers), document.gzip);
  } else {
    context.writer->Reply(200, std::move(headers), http::Gunzip(document.gzip));
  }
}

void OpenApiHandler::HandleV2(Context& context) {
  Wanted wanted = WantedForm(context, kV2Protobuf, kOldV2Protobuf);
  if (wanted == Wanted::kNeither) return NotAcceptable(context);
  DocumentPtr document =
      wanted == Wanted::kProtobuf
          ? Find("v2 protobuf", kV2Protobuf, "", [this] { return api::OpenApiV2Protobuf(served_); })
          : Find("v2 json", kJson, "", [this] { return api::OpenApiV2Json(served_); });
  Reply(context, *document, {{"Vary", "Accept, Accept-Encoding"}});
}

std::string OpenApiHandler::HashOf(const std::string& path) {
  {
    MutexLock lock(mutex_);
    if (auto it = hashes_.find(path); it != hashes_.end()) return it->second;
  }
  std::string hash = Upper(crypto::Sha256Hex(api::OpenApiV3Json(path, served_)));
  MutexLock lock(mutex_);
  return hashes_.emplace(path, std::move(hash)).first->second;
}

void OpenApiHandler::HandleIndex(Context& context) {
  auto make = [this] {
    std::string out = "{\"paths\":{";
    for (const std::string& path : api::OpenApiV3Paths(served_)) {
      if (out.back() != '{') out += ',';
      out +=
          fmt::format(R"("{}":{{"serverRelativeURL":"/openapi/v3/{}?hash={}"}})", path, path, HashOf(path));
    }
    return out + "}}";
  };
  Reply(context, *Find("v3", kJson, "", make), {{"Vary", "Accept-Encoding"}});
}

void OpenApiHandler::HandleV3(Context& context, const std::string& path) {
  // Unknown names are not cached.
  std::vector<std::string> served = api::OpenApiV3Paths(served_);
  if (std::find(served.begin(), served.end(), path) == served.end()) {
    return ReplyText(context, 404, "text/plain; charset=utf-8", "404 page not found\n");
  }
  Wanted wanted = WantedForm(context, kV3Protobuf, kOldV3Protobuf);
  if (wanted == Wanted::kNeither) return NotAcceptable(context);
  std::string hash = HashOf(path);
  http::Headers headers{{"Vary", "Accept, Accept-Encoding"}};
  if (std::string_view asked = context.query().Get("hash"); !asked.empty()) {
    if (asked != hash) {
      context.status = 301;
      headers.Add("Location", fmt::format("/openapi/v3/{}?hash={}", path, hash));
      context.writer->Reply(301, std::move(headers), "");
      return;
    }
    // The URL contains the hash, so the content never changes.
    headers.Add("Cache-Control", "public, immutable");
    headers.Add("Expires", InAYear(clock_.Now()));
  }
  DocumentPtr document =
      wanted == Wanted::kProtobuf
          ? Find(path + " protobuf", kV3Protobuf, hash, [&] { return api::OpenApiV3Protobuf(path, served_); })
          : Find(path, kJson, hash, [&] { return api::OpenApiV3Json(path, served_); });
  Reply(context, *document, std::move(headers));
}

bool OpenApiHandler::Handle(Context& context) {
  std::string_view path = context.info.path;
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  if (path == kV2) {
    HandleV2(context);
  } else if (path == kV3) {
    HandleIndex(context);
  } else if (path.substr(0, kV3.size() + 1) == std::string(kV3) + "/") {
    HandleV3(context, std::string(path.substr(kV3.size() + 1)));
  } else {
    return false;
  }
  return true;
}

}  // namespace keelson::apiserver
