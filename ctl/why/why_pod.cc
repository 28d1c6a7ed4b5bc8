// nodectl why pod NAMESPACE/NAME [--scheduler URL]
#include <CLI/CLI.hpp>
#include <iostream>

#include <boost/json/parse.hpp>

#include "ctl/verb.h"
#include "ctl/why/report.h"
#include "lib/base/percent.h"
#include "lib/http/client/client.h"

namespace keelson::ctl {
namespace {

constexpr std::chrono::seconds kTimeout{10};

struct Options {
  std::string pod;
  std::string scheduler = "http://127.0.0.1:10251";
};

Result<int> WhyPod(const Options& options, const Settings& settings) {
  if (options.pod.find('/') == std::string::npos) {
    return Error(Code::kInvalid, "want NAMESPACE/NAME, not \"" + options.pod + "\"");
  }
  http::ClientOptions client_options;
  client_options.base_url = options.scheduler;
  KEELSON_ASSIGN_OR_RETURN(const std::unique_ptr<http::Client> client,
                           http::Client::Create(std::move(client_options)));
  http::ClientRequest request;
  request.target = "/debug/why?pod=" + PercentEncode(options.pod);
  Result<http::ClientResponse> response = client->Do(request, kTimeout);
  if (!response) return response.error().Wrap("the scheduler's debug endpoint " + options.scheduler);
  if (response->status != 200) {
    while (response->body.ends_with('\n')) response->body.pop_back();
    return Error(CodeOf(response->status, ""), response->body);
  }
  boost::system::error_code malformed;
  const boost::json::value answer = boost::json::parse(response->body, malformed);
  if (malformed || !answer.is_object()) {
    return Error(Code::kInternal, "the scheduler's answer is not understood");
  }
  switch (settings.format()) {
    case OutputFormat::kJson:
      std::cout << ToJson(answer);
      break;
    case OutputFormat::kYaml:
      std::cout << ToYaml(answer);
      break;
    case OutputFormat::kTable:
      std::cout << WhyPodText(answer);
      break;
  }
  return HasNowhereToGo(answer) ? kFoundProblems : 0;
}

}  // namespace

void AddWhyPod(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = parent.add_subcommand("pod", "what the scheduler says of each node");
  verb->add_option("pod", options->pod, "NAMESPACE/NAME")->required();
  verb->add_option("--scheduler", options->scheduler,
                   "Debug endpoint of the scheduler (kube-controlplane --scheduler-debug-port)")
      ->capture_default_str();
  verb->callback([options, &chosen] {
    chosen = [options](const Settings& settings) { return WhyPod(*options, settings); };
  });
}

}  // namespace keelson::ctl
