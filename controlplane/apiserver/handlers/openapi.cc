#include "controlplane/apiserver/handlers/openapi.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "controlplane/apiserver/endpoints/response.h"
#include "lib/api/openapi/custom.h"
#include "lib/base/build_info.h"
#include "lib/base/text.h"
#include "lib/base/version.h"
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

constexpr const char *kV2JsonKey = "v2 json", *kV2ProtobufKey = "v2 protobuf";

constexpr std::chrono::minutes kIdle{5};

bool IsProtobuf(OpenApiForm form) {
  return form == OpenApiForm::kV2Protobuf || form == OpenApiForm::kV3Protobuf;
}

std::string_view ContentType(OpenApiForm form) {
  if (form == OpenApiForm::kV2Protobuf) return kV2Protobuf;
  return form == OpenApiForm::kV3Protobuf ? kV3Protobuf : kJson;
}

// A document that does not come in parts.
api::OpenApiParts Whole(std::string text) { return {std::move(text), "", ""}; }

// Documents of custom resources are told apart by what they are made of: the definitions, and this program.
std::string Program() { return fmt::format("{} {}\n", kGitVersion, Build().git_commit); }

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

OpenApiHandler::DocumentPtr OpenApiHandler::Find(const std::string& key, const std::string& of,
                                                 const std::function<api::OpenApiParts()>& make) {
  {
    MutexLock lock(mutex_);
    if (auto it = documents_.find(key); it != documents_.end() && it->second.of == of) {
      it->second.used = clock_.SteadyNow();
      return it->second.document;
    }
  }
  const api::OpenApiParts parts = make();
  auto made = std::make_shared<Document>();
  crypto::Sha256Sum hash;
  for (const std::string* part : {&parts.head, &parts.middle, &parts.tail}) hash.Add(*part);
  made->hash = Hex(hash.Finish());
  made->head = http::CompressPiece(parts.head);
  made->middle = http::CompressPiece(parts.middle);
  made->tail = http::CompressPiece(parts.tail);
  made->has_paths = parts.has_paths;
  MutexLock lock(mutex_);
  return documents_.insert_or_assign(key, Kept{std::move(made), of, clock_.SteadyNow()})
      .first->second.document;
}

void OpenApiHandler::DropIdle() {
  custom_.DropIdle(kIdle);
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

bool OpenApiHandler::ReplyUnchanged(Context& context, const std::string& hash, http::Headers& headers) const {
  headers.Set("ETag", Quoted(hash));
  if (!headers.Has("Cache-Control")) headers.Add("Cache-Control", "no-cache, private");
  if (!Matches(context.request->headers.Get("If-None-Match"), Quoted(hash))) return false;
  context.status = 304;
  context.writer->Reply(304, std::move(headers), "");
  return true;
}

void OpenApiHandler::Reply(Context& context, const Document& document, Parts parts,
                           std::shared_ptr<const CustomFragment> further, OpenApiForm form,
                           http::Headers headers) const {
  static const http::GzipPiece* const comma = new http::GzipPiece(http::CompressPiece(","));
  std::vector<std::shared_ptr<const CustomFragment>> fragments;
  fragments.reserve(parts.size() + 1);
  for (const CustomOpenApi::Part& part : parts) fragments.push_back(custom_.Fragment(part, form));
  if (further) fragments.push_back(std::move(further));
  std::vector<const http::GzipPiece*> pieces = {&document.head};
  bool first = !document.has_paths;
  for (const auto& fragment : fragments) {
    if (!IsProtobuf(form) && !first) pieces.push_back(comma);
    first = false;
    pieces.push_back(&fragment->paths);
  }
  pieces.push_back(&document.middle);
  for (const auto& fragment : fragments) {
    if (IsProtobuf(form)) break;
    if (fragment->schemas.size == 0) continue;
    pieces.push_back(comma);
    pieces.push_back(&fragment->schemas);
  }
  pieces.push_back(&document.tail);
  std::string gzip = http::JoinPieces(pieces);
  context.status = 200;
  headers.Add("Content-Type", std::string(ContentType(form)));
  if (context.output.gzip) {
    headers.Add("Content-Encoding", "gzip");
    context.writer->Reply(200, std::move(headers), std::move(gzip));
  } else {
    context.writer->Reply(200, std::move(headers), http::Gunzip(gzip));
  }
}

std::string OpenApiHandler::HashV2(OpenApiForm form, const Published& published, const FurtherV2& further) {
  const std::string key(form == OpenApiForm::kV2Json ? kV2JsonKey : kV2ProtobufKey);
  std::string hash;
  {
    MutexLock lock(mutex_);
    if (auto it = hashes_.find(key); it != hashes_.end()) hash = it->second;
  }
  if (hash.empty()) {
    hash = FindV2(form)->hash;
    MutexLock lock(mutex_);
    hashes_.emplace(key, hash);
  }
  if (published->all.empty() && !further.fragment) return hash;
  return crypto::Sha256Hex(Program() + hash + published->identity + further.identity);
}

OpenApiHandler::DocumentPtr OpenApiHandler::FindV2(OpenApiForm form) {
  if (form == OpenApiForm::kV2Json) {
    return Find(kV2JsonKey, "", [this] { return api::OpenApiV2Parts(served_); });
  }
  return Find(kV2ProtobufKey, "", [this] { return Whole(api::OpenApiV2Protobuf(served_)); });
}

void OpenApiHandler::HandleV2(Context& context) {
  const Wanted wanted = WantedForm(context, kV2Protobuf, kOldV2Protobuf);
  if (wanted == Wanted::kNeither) return NotAcceptable(context);
  const OpenApiForm form = wanted == Wanted::kProtobuf ? OpenApiForm::kV2Protobuf : OpenApiForm::kV2Json;
  const Published published = custom_.Current();
  http::Headers headers{{"Vary", "Accept, Accept-Encoding"}};
  FurtherV2 further = further_v2_ ? further_v2_(form) : FurtherV2();
  if (ReplyUnchanged(context, HashV2(form, published, further), headers)) return;
  Reply(context, *FindV2(form), published->all, std::move(further.fragment), form, std::move(headers));
}

std::string OpenApiHandler::BuiltInHash(const std::string& path) {
  {
    MutexLock lock(mutex_);
    if (auto it = hashes_.find(path); it != hashes_.end()) return it->second;
  }
  std::string hash = Upper(crypto::Sha256Hex(api::OpenApiV3Json(path, served_)));
  MutexLock lock(mutex_);
  return hashes_.emplace(path, std::move(hash)).first->second;
}

std::string OpenApiHandler::HashV3(const std::string& path, bool built_in, Parts parts) {
  std::string hash = built_in ? BuiltInHash(path) : "";
  if (parts.empty()) return hash;
  hash = Program() + hash;
  for (const CustomOpenApi::Part& part : parts) hash += part.definition->identity;
  return Upper(crypto::Sha256Hex(hash));
}

void OpenApiHandler::HandleIndex(Context& context) {
  const Published published = custom_.Current();
  const std::string further = further_entries_ ? further_entries_() : "";
  auto make = [&] {
    std::map<std::string, std::string> hashes;
    for (const std::string& path : api::OpenApiV3Paths(served_)) {
      const auto custom = published->documents.find(path);
      hashes[path] = HashV3(path, true, custom == published->documents.end() ? Parts() : custom->second);
    }
    for (const auto& [path, parts] : published->documents) {
      if (!hashes.contains(path)) hashes[path] = HashV3(path, false, parts);
    }
    std::string out = "{\"paths\":{";
    for (const auto& [path, hash] : hashes) {
      if (out.back() != '{') out += ',';
      out += fmt::format(R"("{}":{{"serverRelativeURL":"/openapi/v3/{}?hash={}"}})", path, path, hash);
    }
    if (!further.empty() && out.back() != '{') out += ',';
    return Whole(out + further + "}}");
  };
  const DocumentPtr document = Find("v3", published->identity + further, make);
  http::Headers headers{{"Vary", "Accept-Encoding"}};
  if (ReplyUnchanged(context, document->hash, headers)) return;
  Reply(context, *document, {}, nullptr, OpenApiForm::kV3Json, std::move(headers));
}

OpenApiHandler::DocumentPtr OpenApiHandler::FindV3(const std::string& path, bool built_in, Parts parts,
                                                   OpenApiForm form) {
  const bool protobuf = form == OpenApiForm::kV3Protobuf;
  const char* suffix = protobuf ? " protobuf" : "";
  if (parts.empty()) {
    return Find(path + suffix, "", [&] {
      return protobuf ? Whole(api::OpenApiV3Protobuf(path, served_)) : api::OpenApiV3Parts(path, served_);
    });
  }
  const bool scale = std::any_of(parts.begin(), parts.end(), [](const CustomOpenApi::Part& part) {
    return part.definition->versions[part.version].has_scale;
  });
  // One document serves all groups that are not built in.
  return Find(fmt::format("{} custom{}{}", built_in ? path : "", scale ? " scale" : "", suffix), "", [&] {
    return protobuf ? Whole(api::OpenApiV3ProtobufForCustom(path, scale, served_))
                    : api::OpenApiV3PartsForCustom(path, scale, served_);
  });
}

void OpenApiHandler::HandleV3(Context& context, const std::string& path) {
  // Unknown names are not cached.
  const std::vector<std::string> served = api::OpenApiV3Paths(served_);
  const bool built_in = std::find(served.begin(), served.end(), path) != served.end();
  const Published published = custom_.Current();
  const auto custom = published->documents.find(path);
  const Parts parts = custom == published->documents.end() ? Parts() : custom->second;
  if (!built_in && parts.empty()) {
    return ReplyText(context, 404, "text/plain; charset=utf-8", "404 page not found\n");
  }
  const Wanted wanted = WantedForm(context, kV3Protobuf, kOldV3Protobuf);
  if (wanted == Wanted::kNeither) return NotAcceptable(context);
  const std::string hash = HashV3(path, built_in, parts);
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
  if (ReplyUnchanged(context, hash, headers)) return;
  const OpenApiForm form = wanted == Wanted::kProtobuf ? OpenApiForm::kV3Protobuf : OpenApiForm::kV3Json;
  Reply(context, *FindV3(path, built_in, parts, form), parts, nullptr, form, std::move(headers));
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
