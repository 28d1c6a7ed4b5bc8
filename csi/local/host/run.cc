#include "csi/local/host/run.h"

#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/text.h"

namespace keelson::csi::local {

Result<Ended> RunProgram(const std::vector<std::string>& argv, const std::stop_token& stop) {
  UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
  if (!output) return ErrnoError("memfd_create");
  event::ProcessOptions options;
  options.argv = argv;
  options.env = {{"LC_ALL", "C"}};
  options.output_file = "/proc/self/fd/" + std::to_string(output.get());
  options.die_with_parent = true;
  auto process = event::Process::Start(options);
  if (!process && process.error().Is(Code::kNotFound)) {
    return Error(Code::kConflict, argv.front() + " is not installed");
  }
  if (!process) return process.error();
  auto status = process->Wait(stop);
  if (!status) {
    (void)process->Terminate(std::chrono::milliseconds(0));
    return status.error().Wrap(argv.front());
  }
  ::lseek(output.get(), 0, SEEK_SET);
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadAll(output.get(), "output of " + argv.front()));
  return Ended{*status, std::move(text)};
}

Error ProgramError(const std::vector<std::string>& argv, const Ended& ended) {
  return Error(Code::kInternal,
               Join(argv, " ") + ": " + ended.status.ToString() + ": " + std::string(Trim(ended.output)));
}

}  // namespace keelson::csi::local
