/** What the browser does not do, said in one sentence; `status` as a server would give it. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status = 400,
  ) {
    super(message);
  }
}
