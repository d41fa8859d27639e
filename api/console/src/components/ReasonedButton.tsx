import { Button, type ButtonProps, Tooltip } from '@mantine/core';
import { type ComponentProps, type ReactNode, useId } from 'react';

type Props = ButtonProps &
  Omit<ComponentProps<'button'>, keyof ButtonProps> & {
    /** Set while the button can do nothing: says why, on hover and by keyboard. */
    reason?: string;
  };

/** A button that says why it is disabled. */
export function ReasonedButton({ reason, onClick, ...props }: Props): ReactNode {
  const id = useId();
  if (reason === undefined) return <Button {...props} onClick={onClick} />;
  return (
    <>
      <Tooltip label={reason} openDelay={150} multiline maw={320}>
        <Button
          {...props}
          data-disabled
          aria-disabled
          aria-describedby={id}
          onClick={(event) => event.preventDefault()}
        />
      </Tooltip>
      <span id={id} className="visually-hidden">
        {reason}
      </span>
    </>
  );
}
