// Content negotiation of responses, and content types of bodies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/media_type.h"
#include "lib/http/server/server.h"

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

// The forms in which an endpoint can respond.
enum class Forms {
  kPlain,    // objects only: errors, discovery
  kNoTable,  // also partial metadata: objects that are created but not stored
  kAll,      // also tables
  kList,     // the same, for lists
  kWatch,    // the same, as a stream; without YAML
};

// JSON, with the settings that do not depend on the Accept header: pretty and gzip.
Output PlainOutput(const http::ServerRequest& request);
// kNotAcceptable when the client accepts no supported form.
// `text_only`: whole objects have no protobuf form, as those of custom resources; clients that accept another form as
// well get that one.
Result<Output> NegotiateOutput(const http::ServerRequest& request, Forms forms, bool text_only = false);

// The encoding of a body; JSON without a Content-Type. kUnsupportedMediaType for others.
Result<Encoding> BodyEncoding(const http::ServerRequest& request);

// The values of Warning headers (RFC 7234): 299 - "text", without duplicates. Above 4096 characters in total
// each text is cut at 256, and the excess is dropped. Drops texts that a header cannot hold (control
// characters, invalid UTF-8).
std::vector<std::string> WarningHeaders(const std::vector<std::string>& texts);

}  // namespace keelson::apiserver
