// Content negotiation: which form a reply takes, which form a body has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/http/server.h"

namespace keelson::apiserver {

enum class Encoding { kJson, kYaml, kProtobuf };
enum class As { kObject, kTable, kPartialMetadata };

struct Output {
  Encoding encoding = Encoding::kJson;
  As as = As::kObject;
  std::string version = "v1";  // of meta.k8s.io, for tables and partial metadata
  bool pretty = false;
  bool gzip = false;

  std::string ContentType() const;
};

// One clause of an Accept header: "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.8".
struct MediaType {
  std::string type;  // lower case, with the slash
  std::vector<std::pair<std::string, std::string>> parameters;
  double quality = 1;
  std::string_view Parameter(std::string_view name) const;  // empty when absent
};
MediaType ParseMediaType(std::string_view text);
// In order of preference.
std::vector<MediaType> ParseAccept(std::string_view header);

// kNotAcceptable when the client wants nothing that is there. `transform`: the endpoint can answer with
// tables and partial metadata.
Result<Output> NegotiateOutput(const http::ServerRequest& request, bool transform);

// Of a body. kUnsupportedMediaType for anything else; none is JSON.
Result<Encoding> BodyEncoding(const http::ServerRequest& request);

// The value of one Warning header (RFC 7234): 299 - "text"
std::string WarningHeader(std::string_view text);

}  // namespace keelson::apiserver
