// nodectl info, version, imagefsinfo
#include <google/protobuf/util/json_util.h>

#include <iostream>

#include <boost/json.hpp>

#include "ctl/cri/images.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct InfoOptions {
  CriOutput output;
  bool quiet = false;
};

// The names of the protocol, and no empty fields: crictl's form of handlers and features.
Result<boost::json::value> TerseDocument(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) return Error(Code::kInternal, "answer of the runtime: " + status.ToString());
  return boost::json::parse(text);
}

Result<int> ShowInfo(CriClient& client, const InfoOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(const CriFormat format, options.output.Format());
  cri::StatusRequest request;
  request.set_verbose(!options.quiet);
  const auto reply = client.Ask(&RuntimeStub::Status, request);
  if (!reply) return reply.error().Wrap("getting status of runtime");
  KEELSON_ASSIGN_OR_RETURN(boost::json::value status, MessageDocument(reply->status()));
  KEELSON_ASSIGN_OR_RETURN(boost::json::value document,
                           StatusDocument(std::move(status), Items(reply->info())));
  boost::json::array handlers;
  for (const cri::RuntimeHandler& handler : reply->runtime_handlers()) {
    KEELSON_ASSIGN_OR_RETURN(boost::json::value one, TerseDocument(handler));
    handlers.push_back(std::move(one));
  }
  if (!handlers.empty()) document.as_object()["runtimeHandlers"] = std::move(handlers);
  if (reply->has_features()) {
    KEELSON_ASSIGN_OR_RETURN(document.as_object()["features"], TerseDocument(reply->features()));
  }
  KEELSON_ASSIGN_OR_RETURN(const std::string text,
                           StatusText({document}, format, options.output.go_template));
  std::cout << text;
  return 0;
}

Result<int> ShowVersion(CriClient& client) {
  cri::VersionRequest request;
  request.set_version("v1");
  const auto reply = client.Ask(&RuntimeStub::Version, request);
  if (!reply) return reply.error().Wrap("getting the runtime version");
  std::cout << "Version:  " << reply->version() << "\nRuntimeName:  " << reply->runtime_name()
            << "\nRuntimeVersion:  " << reply->runtime_version()
            << "\nRuntimeApiVersion:  " << reply->runtime_api_version() << "\n";
  return 0;
}

Result<int> ShowImageFs(CriClient& client, const InfoOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(const CriFormat format, options.output.Format());
  const auto reply = client.Ask(&ImageStub::ImageFsInfo, cri::ImageFsInfoRequest());
  if (!reply) return reply.error().Wrap("image filesystem info request");
  if (format == CriFormat::kTable) {
    std::cout << ImageFsText(*reply);
    return 0;
  }
  KEELSON_ASSIGN_OR_RETURN(boost::json::value status, MessageDocument(*reply));
  KEELSON_ASSIGN_OR_RETURN(const boost::json::value document, StatusDocument(std::move(status), {}));
  KEELSON_ASSIGN_OR_RETURN(const std::string text,
                           StatusText({document}, format, options.output.go_template));
  std::cout << text;
  return 0;
}

}  // namespace

void AddCriInfo(const CriVerbs& verbs) {
  auto info = std::make_shared<InfoOptions>();
  CLI::App* verb = verbs.Add("info", "Show the status of the container runtime",
                             [info](CriClient& client) { return ShowInfo(client, *info); });
  info->output.AddTo(*verb, verbs, "json", true);
  verb->add_flag("-q,--quiet", info->quiet, "Without what only this runtime tells");
  verbs.Add("version", "Show the versions of the container runtime", ShowVersion);
  auto space = std::make_shared<InfoOptions>();
  CLI::App* images = verbs.Add("imagefsinfo", "Show what images take on disks",
                               [space](CriClient& client) { return ShowImageFs(client, *space); });
  space->output.AddTo(*images, verbs, "json", true);
}

}  // namespace keelson::ctl
