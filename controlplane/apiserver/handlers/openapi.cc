#include "controlplane/apiserver/handlers/openapi.h"

#include "controlplane/apiserver/handlers/gzip.h"
#include "controlplane/apiserver/handlers/response.h"
#include "lib/api/openapi.h"
#include "lib/http/signing_key.h"

namespace keelson::apiserver {
namespace {

constexpr std::string_view kV2 = "/openapi/v2";
constexpr std::string_view kV3 = "/openapi/v3";
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kV2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

enum class Wanted { kJson, kProtobuf, kNeither };

Wanted WantedForm(const Context& context) {
  std::vector<MediaType> clauses = ParseAccept(context.request->headers.Get("Accept"));
  if (clauses.empty()) return Wanted::kJson;
  for (const MediaType& clause : clauses) {
    if (clause.type.find("proto-openapi.spec.v2") != std::string::npos) return Wanted::kProtobuf;
    if (clause.type == kJson || clause.type == "*/*" || clause.type == "application/*") return Wanted::kJson;
  }
  return Wanted::kNeither;
}

}  // namespace

std::shared_ptr<const OpenApiHandler::Document> OpenApiHandler::Find(
    const std::string& key, std::string_view content_type, const std::function<std::string()>& make) {
  {
    MutexLock lock(mutex_);
    if (auto it = documents_.find(key); it != documents_.end()) return it->second;
  }
  std::string text = make();
  if (text.empty()) return nullptr;
  auto made = std::make_shared<Document>();
  made->content_type = content_type;
  made->etag = "\"" + http::Sha256Hex(text) + "\"";
  made->gzip = Gzip({std::make_shared<const std::string>(std::move(text))});
  MutexLock lock(mutex_);
  return documents_.emplace(key, std::move(made)).first->second;
}

void OpenApiHandler::Reply(Context& context, const Document& document) const {
  http::Headers headers{{"Content-Type", document.content_type},
                        {"ETag", document.etag},
                        {"Vary", "Accept, Accept-Encoding"},
                        {"Cache-Control", "no-cache, private"}};
  if (context.request->headers.Get("If-None-Match") == document.etag) {
    context.status = 304;
    context.writer->Reply(304, std::move(headers), "");
    return;
  }
  context.status = 200;
  if (context.output.gzip) {
    headers.Add("Content-Encoding", "gzip");
    context.writer->Reply(200, std::move(headers), document.gzip);
  } else {
    context.writer->Reply(200, std::move(headers), Gunzip(document.gzip));
  }
}

void OpenApiHandler::HandleV3(Context& context, std::string_view rest) {
  std::shared_ptr<const Document> document;
  if (rest.empty()) {
    document = Find(std::string(kV3), kJson, api::OpenApiV3IndexJson);
  } else {
    // /api/v1 or /apis/GROUP/VERSION
    std::string_view group, version;
    if (rest.substr(0, 5) == "/api/") {
      version = rest.substr(5);
    } else if (rest.substr(0, 6) == "/apis/") {
      rest.remove_prefix(6);
      auto slash = rest.find('/');
      group = rest.substr(0, slash);
      if (slash != std::string_view::npos) version = rest.substr(slash + 1);
    }
    if (!version.empty()) {
      // Only groups and versions that are served are kept: anybody could ask for names without end.
      document = Find(context.info.path, kJson, [&] { return api::OpenApiV3Json(group, version); });
    }
  }
  if (document) return Reply(context, *document);
  ReplyText(context, 404, "text/plain; charset=utf-8", "404 page not found\n");
}

bool OpenApiHandler::Handle(Context& context) {
  std::string_view path = context.info.path;
  bool v2 = path == kV2;
  bool v3 = path.substr(0, kV3.size()) == kV3 && (path.size() == kV3.size() || path[kV3.size()] == '/');
  if (!v2 && !v3) return false;
  Wanted wanted = WantedForm(context);
  if (wanted == Wanted::kNeither || (v3 && wanted == Wanted::kProtobuf)) {
    ReplyText(context, 406, "text/plain; charset=utf-8", "only application/json is served here\n");
  } else if (v3) {
    path.remove_prefix(kV3.size());
    while (!path.empty() && path.back() == '/') path.remove_suffix(1);
    HandleV3(context, path);
  } else if (wanted == Wanted::kProtobuf) {
    Reply(context, *Find("v2 protobuf", kV2Protobuf, api::OpenApiV2Protobuf));
  } else {
    Reply(context, *Find("v2 json", kJson, api::OpenApiV2Json));
  }
  return true;
}

}  // namespace keelson::apiserver
