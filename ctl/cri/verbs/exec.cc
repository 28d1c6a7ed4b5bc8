// nodectl exec
#include <iostream>
#include <thread>

#include "ctl/cri/containers.h"
#include "ctl/cri/verbs/add.h"
#include "ctl/cri/verbs/stream_flags.h"
#include "ctl/cri/verbs/verb.h"

namespace keelson::ctl {
namespace {

struct ExecOptions {
  std::vector<std::string> words;  // [CONTAINER-ID] COMMAND [ARG...]
  CriFilter filter;
  CommandStream stream;
  int64_t timeout_seconds = 0;
  bool sync = false, quiet = false, ignore_errors = false, parallel = false;
};

Result<int> ExecSync(CriClient& client, const ExecOptions& options, const std::string& id,
                     const std::vector<std::string>& command) {
  cri::ExecSyncRequest request;
  request.set_container_id(id);
  request.set_timeout(options.timeout_seconds);
  for (const std::string& word : command) request.add_cmd(word);
  const auto reply = client.Call(&RuntimeStub::ExecSync, request);
  if (!reply) return reply.error().Wrap("execing command in container " + id + " synchronously");
  std::cout << reply->stdout() << std::flush;
  std::cerr << reply->stderr() << std::flush;
  return reply->exit_code();
}

Result<int> ExecIn(CriClient& client, const ExecOptions& options, const std::string& id,
                   const std::vector<std::string>& command) {
  if (options.sync) return ExecSync(client, options, id, command);
  cri::ExecRequest request;
  request.set_container_id(id);
  for (const std::string& word : command) request.add_cmd(word);
  request.set_tty(options.stream.tty);
  request.set_stdin(options.stream.input);
  request.set_stdout(true);
  request.set_stderr(!options.stream.tty);
  const auto reply = client.Ask(&RuntimeStub::Exec, request);
  if (!reply) return reply.error().Wrap("execing command in container " + id);
  Result<int> code = RunStream(options.stream, reply->url());
  if (!code) return code.error().Wrap("execing command in container " + id);
  return code;
}

// The exit code of the first that failed; tells the failure of each.
Result<int> ExecInAll(CriClient& client, const ExecOptions& options, const std::vector<std::string>& ids,
                      const std::vector<std::string>& command) {
  std::vector<Result<int>> results(ids.size(), 0);
  auto run = [&](size_t i) { results[i] = ExecIn(client, options, ids[i], command); };
  if (options.parallel) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < ids.size(); ++i) threads.emplace_back(run, i);
  } else {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids.size() > 1 && !options.quiet) std::cout << ids[i] << ":" << std::endl;
      run(i);
    }
  }
  int first = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const Result<int>& one = results[i];
    if (one && *one == 0) continue;
    std::cerr << "nodectl: "
              << (one ? "command terminated with exit code " + std::to_string(*one) : one.error().message())
              << "\n";
    if (first == 0) first = one ? *one : 1;
  }
  return options.ignore_errors ? 0 : first;
}

Result<int> Exec(CriClient& client, const ExecOptions& options) {
  KEELSON_RETURN_IF_ERROR(CheckStream(options.stream));
  if (options.timeout_seconds != 0 && !options.sync) {
    return Error(Code::kInvalid, "--timeout needs --sync: a stream has no end of its own");
  }
  std::vector<std::string> ids, command = options.words;
  if (!options.filter.given()) {
    if (command.size() < 2) return Error(Code::kInvalid, "want CONTAINER-ID COMMAND [ARG...]");
    ids.push_back(command.front());
    command.erase(command.begin());
  } else {
    if (command.empty()) return Error(Code::kInvalid, "want COMMAND [ARG...]");
    const auto found = ListContainers(client, options.filter);
    if (!found) return found.error().Wrap("listing containers");
    for (const cri::Container& container : *found) ids.push_back(container.id());
    if (ids.empty()) return Error(Code::kNotFound, "No containers found per filter flags");
  }
  if (ids.size() > 1 && options.stream.input) {
    return Error(Code::kInvalid,
                 "standard input is for one container, not for " + std::to_string(ids.size()));
  }
  return ExecInAll(client, options, ids, command);
}

}  // namespace

void AddCriExec(const CriVerbs& verbs) {
  auto options = std::make_shared<ExecOptions>();
  // The command's own words: the first that is no flag begins them.
  auto verb = std::make_shared<CLI::App*>(nullptr);
  *verb = verbs.Add("exec", "Run a command in a container: [CONTAINER-ID] COMMAND [ARG...]",
                    [options, verb](CriClient& client) -> Result<int> {
                      options->words = (*verb)->remaining();
                      if (!options->words.empty() && options->words[0] == "--") {
                        options->words.erase(options->words.begin());
                      }
                      if (!options->words.empty() && options->words[0].starts_with("-")) {
                        return Error(Code::kInvalid, "unknown flag: " + options->words[0]);
                      }
                      return Exec(client, *options);
                    });
  CLI::App& app = **verb;
  app.prefix_command();
  AddFilter(app, options->filter, "name pod image long-state label latest last");
  app.add_flag("-t,--tty", options->stream.tty, "With a terminal");
  app.add_flag("-i,--interactive", options->stream.input, "Pass standard input on");
  app.add_flag("-s,--sync", options->sync, "Print the output when the command has ended");
  app.add_option("--timeout", options->timeout_seconds,
                 "Seconds that the command may take, with --sync; 0: any")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("-q,--quiet", options->quiet, "Without ids of several containers");
  app.add_flag("-e,--ignore-errors", options->ignore_errors, "Exit with 0 whatever the command does");
  app.add_flag("-x,--parallel", options->parallel, "In several containers at a time");
  AddStreamFlags(app, options->stream);
}

}  // namespace keelson::ctl
