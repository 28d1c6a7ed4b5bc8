#include "csi/local/host/run.h"

#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/text.h"

namespace keelson::csi::local {

namespace {

// Asked to end, a program may tidy up first.
constexpr std::chrono::seconds kGrace(10);

Result<std::string> Written(const UniqueFd& file, const std::string& program) {
  ::lseek(file.get(), 0, SEEK_SET);
  return ReadAll(file.get(), "output of " + program);
}

}  // namespace

Result<Ended> RunProgram(const std::vector<std::string>& argv, const RunOptions& how,
                         const std::stop_token& stop) {
  UniqueFd output(::memfd_create("output", MFD_CLOEXEC)), apart(::memfd_create("stdout", MFD_CLOEXEC));
  if (!output || !apart) return ErrnoError("memfd_create");
  event::ProcessOptions options;
  options.argv = argv;
  options.env = {{"LC_ALL", "C"}};
  options.output_file = "/proc/self/fd/" + std::to_string(output.get());
  if (how.apart) options.output_fd = apart.get();
  options.die_with_parent = !how.survives;
  auto process = event::Process::Start(options);
  if (!process && process.error().Is(Code::kNotFound)) {
    return Error(Code::kConflict, argv.front() + " is not installed");
  }
  if (!process) return process.error();
  auto status = process->Wait(stop, how.timeout);
  if (!status) {
    (void)process->Terminate(how.survives ? kGrace : std::chrono::milliseconds(0));
    return status.error().Wrap(argv.front());
  }
  KEELSON_ASSIGN_OR_RETURN(std::string text, Written(output, argv.front()));
  if (!how.apart) return Ended{*status, std::move(text), ""};
  KEELSON_ASSIGN_OR_RETURN(std::string standard, Written(apart, argv.front()));
  return Ended{*status, std::move(standard), std::move(text)};
}

Result<Ended> RunProgram(const std::vector<std::string>& argv, const std::stop_token& stop) {
  return RunProgram(argv, RunOptions(), stop);
}

Error ProgramError(const std::vector<std::string>& argv, const Ended& ended) {
  return Error(Code::kInternal,
               Join(argv, " ") + ": " + ended.status.ToString() + ": " + std::string(Trim(ended.output)));
}

}  // namespace keelson::csi::local
