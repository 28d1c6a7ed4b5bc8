// nodectl attach
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/stream_flags.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct AttachOptions {
  std::string id;
  CommandStream stream;
};

Result<int> Attach(CriClient& client, const AttachOptions& options) {
  KEELSON_RETURN_IF_ERROR(CheckStream(options.stream));
  cri::AttachRequest request;
  request.set_container_id(options.id);
  request.set_tty(options.stream.tty);
  request.set_stdin(options.stream.input);
  request.set_stdout(true);
  request.set_stderr(!options.stream.tty);
  const auto reply = client.Ask(&RuntimeStub::Attach, request);
  if (!reply) return reply.error().Wrap("attaching running container");
  Result<int> code = RunStream(options.stream, reply->url());
  if (!code) return code.error().Wrap("attaching running container");
  return code;
}

}  // namespace

void AddCriAttach(const CriVerbs& verbs) {
  auto options = std::make_shared<AttachOptions>();
  CLI::App* verb = verbs.Add("attach", "Attach to a running container",
                             [options](CriClient& client) { return Attach(client, *options); });
  verb->add_option("CONTAINER-ID", options->id, "The container")->required();
  verb->add_flag("-t,--tty", options->stream.tty, "The container has a terminal");
  verb->add_flag("-i,--stdin", options->stream.input, "Pass standard input on");
  AddStreamFlags(*verb, options->stream);
}

}  // namespace keelson::ctl
