// Content negotiation: which form a reply takes, which form a body has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/http/server.h"

namespace keelson::apiserver {

enum class Encoding { kJson, kYaml, kProtobuf };
enum class As { kObject, kTable, kPartialMetadata, kPartialMetadataList };

struct Output {
  Encoding encoding = Encoding::kJson;
  As as = As::kObject;
  std::string version = "v1";  // of meta.k8s.io, for tables and partial metadata
  bool pretty = false;
  bool gzip = false;

  std::string ContentType() const;
};

// What an endpoint can answer with.
enum class Forms {
  kPlain,    // objects as they are: errors, discovery
  kNoTable,  // also partial metadata: what is created and never stored
  kAll,      // also tables
  kWatch,    // the same as a stream, for which YAML has no form
};

// One clause of an Accept header: "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.8".
struct MediaType {
  std::string type;  // lower case, with the slash
  std::vector<std::pair<std::string, std::string>> parameters;
  double quality = 1;
  std::string_view Parameter(std::string_view name) const;  // empty when absent
};
MediaType ParseMediaType(std::string_view text);
// In order of preference: quality, then how specific they are. What is no media type is left out.
std::vector<MediaType> ParseAccept(std::string_view header);

// Whether a clause of an Accept header covers "application/json" and the like.
bool Covers(const MediaType& clause, std::string_view type);

// JSON, with what does not depend on the Accept header: pretty and gzip.
Output PlainOutput(const http::ServerRequest& request);
// kNotAcceptable when the client wants nothing that is there.
Result<Output> NegotiateOutput(const http::ServerRequest& request, Forms forms);

// Of a body. kUnsupportedMediaType for anything else; none is JSON.
Result<Encoding> BodyEncoding(const http::ServerRequest& request);

// The values of Warning headers (RFC 7234): 299 - "text", each text once. Clients are spared long ones: above
// 4096 characters in all, each is cut at 256 and what is still too much is left out. Texts that no header may
// hold (control characters, bytes that are not UTF-8) are dropped.
std::vector<std::string> WarningHeaders(const std::vector<std::string>& texts);

}  // namespace keelson::apiserver
