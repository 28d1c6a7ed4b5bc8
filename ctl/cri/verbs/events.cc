// nodectl events
#include <iostream>

#include <boost/json.hpp>

#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

Result<int> ShowEvents(CriClient& client, const CriOutput& output) {
  KEELSON_ASSIGN_OR_RETURN(const CriFormat format, output.Format());
  if (format == CriFormat::kTable) return Error(Code::kInvalid, "don't support \"table\" format");
  rpc::Call call(std::chrono::milliseconds(0));
  const auto stream = client.runtime().GetContainerEvents(call.context(), cri::GetEventsRequest());
  cri::ContainerEventResponse event;
  while (stream->Read(&event)) {
    KEELSON_ASSIGN_OR_RETURN(const boost::json::value document, MessageDocument(event));
    KEELSON_ASSIGN_OR_RETURN(const std::string text, CriText(document, format, output.go_template));
    std::cout << text << std::flush;
  }
  const grpc::Status status = stream->Finish();
  if (!status.ok()) return rpc::GoError(status).Wrap("getting container events");
  return 0;
}

}  // namespace

void AddCriEvents(const CriVerbs& verbs) {
  auto output = std::make_shared<CriOutput>();
  CLI::App* verb = verbs.Add("events", "Show events of containers as they happen",
                             [output](CriClient& client) { return ShowEvents(client, *output); });
  verb->alias("event");
  output->AddTo(*verb, verbs, "json", true);
}

}  // namespace keelson::ctl
